package comm

import (
	"bytes"
	"encoding/binary"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// section returns the rows of the first table after a line of docs/wire.md,
// without its head, as their cells.
func section(t *testing.T, after string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+after+"\n")
	if !ok {
		t.Fatalf("docs/wire.md has no %q", after)
	}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|\n"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows[2:]
}

// layout is a table of fields: name to offset and length.
type layout map[string][2]int

func layoutOf(t *testing.T, after string) (l layout, size int) {
	t.Helper()
	l = layout{}
	for _, row := range section(t, after) {
		off, err := strconv.Atoi(row[0])
		if err != nil || off != size {
			t.Fatalf("%s: field %s at %q, want %d", after, row[2], row[0], size)
		}
		n, err := strconv.Atoi(row[1])
		if err != nil {
			break // what has no fixed length
		}
		l[row[2]] = [2]int{off, n}
		size += n
	}
	return l, size
}

// check compares encoded fields with the values that they were given.
func (l layout) check(t *testing.T, what string, b []byte, values map[string]uint64) {
	t.Helper()
	for name, at := range l {
		want, ok := values[name]
		if !ok {
			t.Errorf("%s has no field %s", what, name)
			continue
		}
		var padded [8]byte
		copy(padded[:], b[at[0]:][:at[1]])
		if got := binary.LittleEndian.Uint64(padded[:]); got != want {
			t.Errorf("%s: field %s holds %#x, want %#x", what, name, got, want)
		}
	}
	if len(l) != len(values) {
		t.Errorf("%s: %d fields in the document, %d in the code", what, len(l), len(values))
	}
}

// TestWireDocument compares docs/wire.md with the code.
func TestWireDocument(t *testing.T) {
	t.Run("header", func(t *testing.T) {
		l, size := layoutOf(t, "## Header")
		if size != HeaderSize {
			t.Errorf("%d bytes, want %d", size, HeaderSize)
		}
		h := header{kindMeta, 0x01020304, 0x05060708, 0x1112131415161718, 0x2122232425262728, 0x31323334, 0x343637, 0x4142434445464748, 0x51525354, 0, 0x61626364}
		f := h.frame(make([]byte, 9))
		sum := binary.LittleEndian.Uint32(f[l["checksum"][0]:])
		l.check(t, "header", f, map[string]uint64{
			"magic": 0x4c53, "version": wireVersion, "kind": uint64(kindMeta), "checksum": uint64(sum), "epoch": 0x01020304,
			"generation": 0x05060708, "operation": 0x1112131415161718, "sequence": 0x2122232425262728, "part": 0x31323334,
			"metadata": 0x343637, "payload": 0x4142434445464748, "segment": 0x51525354, "body": 9, "credit": 0x61626364, "reserved": 0,
		})
		if want := section(t, "## Header")[1][3]; want != strconv.Itoa(wireVersion) {
			t.Errorf("version %s", want)
		}
	})
	t.Run("kinds", func(t *testing.T) {
		rows := section(t, "## Kinds")
		names := map[string]bool{}
		for _, row := range rows {
			n, err := strconv.Atoi(row[0])
			if err != nil || !kind(n).valid() {
				t.Errorf("kind %s is not valid", row[0])
			}
			if got := strings.ReplaceAll(row[1], " ", ""); got != kindNames[kind(n)] {
				t.Errorf("kind %d is %s, in transcripts %s", n, got, kindNames[kind(n)])
			}
			names[row[1]] = true
		}
		valid := 0
		for n := range 256 {
			if kind(n).valid() {
				valid++
			}
		}
		if valid != len(names) {
			t.Errorf("%d kinds in the document, %d in the code", len(names), valid)
		}
	})
	t.Run("limits", func(t *testing.T) {
		limits := map[string]int{
			"header": HeaderSize, "metadata": MaxMeta, "fingerprint": maxFingerprint, "cause": maxCause, "smallest head": minHead,
			"smallest segment": minSegment, "largest segment": maxSegment, "largest batch": maxBatch,
		}
		rows := section(t, "## Limits")
		for _, row := range rows {
			if want := strconv.Itoa(limits[row[0]]); row[1] != want {
				t.Errorf("%s is %s, want %s", row[0], row[1], want)
			}
		}
		if len(rows) != len(limits) {
			t.Errorf("%d limits", len(rows))
		}
	})
	t.Run("hello", func(t *testing.T) {
		l, size := layoutOf(t, "Hello:")
		h := hello{0x01020304, 0x1112131415161718, 0x2122232425262728, 0x31323334, 0x41424344}
		if size != helloSize {
			t.Errorf("%d bytes, want %d", size, helloSize)
		}
		l.check(t, "hello", h.encode(), map[string]uint64{
			"size": 0x01020304, "capacity": 0x1112131415161718, "segment": 0x2122232425262728, "head": 0x31323334, "credit": 0x41424344,
		})
	})
	t.Run("reply", func(t *testing.T) {
		l, size := layoutOf(t, "Reply:")
		if size != answerSize {
			t.Errorf("%d bytes, want %d", size, answerSize)
		}
		a := answer{true, 0x1112131415161718, 0x2122232425262728, 0x3132333435363738}
		l.check(t, "reply", a.encode(), map[string]uint64{
			"quiet": 1, "version": 0x1112131415161718, "sent": 0x2122232425262728, "received": 0x3132333435363738,
		})
	})
	t.Run("batch", func(t *testing.T) {
		l, size := layoutOf(t, "## Batch")
		if size != recordHeader {
			t.Errorf("%d bytes, want %d", size, recordHeader)
		}
		b := make([]byte, recordSize(3, 5))
		n := putRecord(b, 0x01020304, []byte("abc"), 5, func(p []byte) { copy(p, "12345") })
		l.check(t, "batch", b, map[string]uint64{"part": 0x01020304, "metadata": 3, "payload": 5, "reserved": 0})
		if want := "12345\x00\x00\x00abc\x00\x00\x00\x00\x00"; n != len(b) || !bytes.Equal(b[size:], []byte(want)) {
			t.Errorf("record of %d bytes ends with %q", n, b[size:])
		}
	})
	t.Run("open", func(t *testing.T) {
		got := Fingerprint{"shuffle", []Param{{"parts", "4"}, {"owner", "a=b"}}}.encode()
		if want := "shuffle\nparts=4\nowner=a=b"; string(got) != want {
			t.Errorf("%q", got)
		}
	})
	t.Run("abort", func(t *testing.T) {
		got := encodeCause(&MismatchError{What: "op 1", Diff: []string{"parts: 1 here, 2 there"}})
		if want := regexp.MustCompile(`^\{"text":".*","mismatch":\{.*\}\}$`); !want.Match(got) {
			t.Errorf("%s", got)
		}
	})
}
