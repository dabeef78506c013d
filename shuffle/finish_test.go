package shuffle

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFinishRoundTrip(t *testing.T) {
	for _, entries := range [][]partCount{
		nil,
		{{0, 1}},
		{{0, 2}, {3, 300}, {4, 1}},
		{{7, 1 << 62}},
		{{0, 1}, {math.MaxUint32 - 1, 1}},
	} {
		b := appendFinish(nil, entries)
		got, err := decodeFinish(b, math.MaxUint32, len(entries))
		if err != nil || !slices.Equal(got, entries) {
			t.Errorf("%v became %v, %v", entries, got, err)
		}
		for n := range b {
			if _, err := decodeFinish(b[:n], math.MaxUint32, len(entries)); err == nil {
				t.Errorf("%v: the first %d of %d bytes were taken", entries, n, len(b))
			}
		}
	}
}

// FuzzFinish feeds finish messages that a peer could send. What is taken is a
// list that an honest rank can have meant.
func FuzzFinish(f *testing.F) {
	f.Add(appendFinish(nil, nil), uint16(1), uint16(1))
	f.Add(appendFinish(nil, []partCount{{0, 2}, {3, 300}, {4, 1}}), uint16(5), uint16(3))
	f.Add([]byte{1, 0x80}, uint16(9), uint16(9))
	f.Add([]byte{0x80, 0}, uint16(9), uint16(9))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, uint16(9), uint16(9))
	f.Fuzz(func(t *testing.T, b []byte, parts, limit uint16) {
		entries, err := decodeFinish(b, int(parts), int(limit))
		if err != nil {
			if !errors.Is(err, errFinish) {
				t.Fatalf("error of another class: %v", err)
			}
			return
		}
		if len(entries) > int(limit) {
			t.Fatalf("%d entries, at most %d", len(entries), limit)
		}
		for i, e := range entries {
			if int(e.part) >= int(parts) || i > 0 && e.part <= entries[i-1].part || e.count == 0 || e.count > 1<<62 {
				t.Fatalf("entry %d of %v, %d partitions", i, entries, parts)
			}
		}
		if again := appendFinish(nil, entries); !bytes.Equal(again, b) {
			t.Fatalf("%x was taken, and is %x", b, again)
		}
	})
}

// TestWireDocument compares what docs/wire.md says with the code.
func TestWireDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "## Finish of a shuffle\n")
	if !ok {
		t.Fatal("no such section")
	}
	example := regexp.MustCompile("the message is `([0-9a-f ]+)`").FindStringSubmatch(section)
	if example == nil {
		t.Fatal("no example")
	}
	want, err := hex.DecodeString(strings.ReplaceAll(example[1], " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := appendFinish(nil, []partCount{{0, 2}, {3, 300}, {4, 1}}); !bytes.Equal(got, want) {
		t.Errorf("the code says %x", got)
	}
}
