package comm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluice-engine/sluice/buffer"
)

// Whatever decodes has the bounds that the rest of the package counts on, and
// encodes to the bytes that it came from. FuzzRank in fuzz_rank_test.go is the
// same for frames that decode one by one and make no sense together.

// FuzzHeader: sealed frames have a correct checksum, so that the fields behind
// it are looked at, too.
func FuzzHeader(f *testing.F) {
	for kd := range kindNames {
		h := header{kind: kd, epoch: 7, gen: 1, op: 5, seq: 9, part: 3, meta: 4, data: 5000, seg: 1, credit: 100}
		f.Add(h.frame([]byte("meta")), true)
		f.Add(h.frame(nil), false)
	}
	limits := header{kind: kindData, epoch: math.MaxUint32, gen: math.MaxUint32, op: NoOp, seq: math.MaxInt64, part: math.MaxUint32,
		meta: MaxMeta, data: math.MaxInt64, seg: math.MaxUint32, credit: math.MaxUint32}
	f.Add(limits.frame(nil), true)
	limits.meta++
	f.Add(limits.frame(nil), true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, frame []byte, sealed bool) {
		frame = slices.Clone(frame)
		if sealed && len(frame) >= HeaderSize {
			binary.LittleEndian.PutUint32(frame[4:], 0)
			binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[:HeaderSize], crcTable))
		}
		var h header
		if err := h.decode(frame); err != nil {
			if !errors.Is(err, errFrame) {
				t.Fatalf("error of another class: %v", err)
			}
			return
		}
		if h.meta > MaxMeta || int64(h.data) < 0 || int64(h.seq) < 0 || int(h.inline) != len(frame)-HeaderSize {
			t.Fatalf("out of bounds: %+v", h)
		}
		if again := h.frame(frame[HeaderSize:]); !bytes.Equal(again, frame) {
			t.Fatalf("encodes to\n%x, not\n%x", again, frame)
		}
		for bit := range HeaderSize * 8 {
			frame[bit/8] ^= 1 << (bit % 8)
			if err := new(header).decode(frame); err == nil {
				t.Fatalf("bit %d is not covered by the checksum", bit)
			}
			frame[bit/8] ^= 1 << (bit % 8)
		}
	})
}

// FuzzBatch: padding is written as zeros and not looked at, so it may differ.
func FuzzBatch(f *testing.F) {
	var all []byte
	for _, r := range []Record{{1, []byte("meta"), []byte("a payload")}, {2, nil, nil}, {3, []byte("12345678"), nil}, {math.MaxUint32, nil, []byte{1}}} {
		b := record(r)
		f.Add(b)
		all = append(all, b...)
	}
	f.Add(all)
	f.Add(all[:len(all)-1])
	f.Add(slices.Concat([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, make([]byte, 20)))
	f.Fuzz(func(t *testing.T, p []byte) {
		n, err := checkRecords(p)
		if err != nil {
			if !errors.Is(err, errFrame) {
				t.Fatalf("error of another class: %v", err)
			}
			return
		}
		again, got := encodeRecords(p)
		if got != n || len(again) != len(p) {
			t.Fatalf("%d records in %d bytes, checked were %d in %d", got, len(again), n, len(p))
		}
		if twice, _ := encodeRecords(again); !bytes.Equal(twice, again) {
			t.Fatalf("encodes to\n%x, then\n%x", again, twice)
		}
		for i := range p {
			if again[i] != p[i] && again[i] != 0 {
				t.Fatalf("encodes to\n%x, not\n%x", again, p)
			}
		}
	})
}

func record(r Record) []byte {
	b := make([]byte, recordSize(len(r.Meta), len(r.Data)))
	putRecord(b, r.Part, r.Meta, len(r.Data), func(dst []byte) { copy(dst, r.Data) })
	return b
}

// encodeRecords writes the records of a checked batch anew.
func encodeRecords(p []byte) (out []byte, n int) {
	for r := range (&Batch{bytes: p}).Records() {
		out = append(out, record(r)...)
		n++
	}
	return out, n
}

// FuzzCause: a cause survives any number of ranks, and any text becomes one
// that every rank takes.
func FuzzCause(f *testing.F) {
	for _, err := range causes() {
		f.Add(encodeCause(err))
	}
	f.Add([]byte(`{"text":"a","corrupt":null,"mismatch":{}}`))
	f.Add([]byte(`null`))
	f.Add(bytes.Repeat([]byte("\x01"), maxCause/4))
	f.Add(bytes.Repeat([]byte("é"), maxCause/8+1))
	f.Fuzz(func(t *testing.T, p []byte) {
		again := func(sent []byte) error {
			if len(sent) > maxCause {
				t.Fatalf("cause of %d bytes", len(sent))
			}
			got, err := decodeCause(sent)
			if err != nil {
				t.Fatalf("%s: %v", sent, err)
			}
			if next := encodeCause(got); !bytes.Equal(next, sent) {
				t.Fatalf("passed on as\n%s, not\n%s", next, sent)
			}
			return got
		}
		text := string(p)
		if got := again(encodeCause(errors.New(text))); utf8.Valid(p) && !strings.HasPrefix(text, got.Error()) {
			t.Fatalf("%q became %q", text, got)
		}
		got, err := decodeCause(p)
		if err != nil {
			if !errors.Is(err, errFrame) {
				t.Fatalf("error of another class: %v", err)
			}
			return
		}
		_ = again(encodeCause(got))
	})
}

// causes are one of each kind that is rebuilt, and texts of all lengths.
func causes() []error {
	return []error{
		errors.New("plain"),
		errors.New(strings.Repeat("long ", maxCause)),
		&MismatchError{What: "shuffle", Peer: 3, Diff: []string{"parts: 3 here, 4 there"}},
		&MismatchError{What: "shuffle", Peer: 3, Diff: []string{strings.Repeat("<", maxCause)}},
		fmt.Errorf("wrapped: %w", &buffer.NoMemoryError{Want: 5, Limit: 4, Holders: []buffer.Held{{Holder: "caller", Bytes: 3}}, Hint: "more"}),
		&buffer.CorruptError{Where: "frame header", Peer: 2},
	}
}

// FuzzBody: what follows the header of a hello, a reply and an open frame.
func FuzzBody(f *testing.F) {
	h := hello{size: 3, capacity: 1 << 40, segment: maxSegment, maxHead: 8 << 10, credit: maxCredit}
	a := answer{quiet: true, version: 1, sent: 2, received: 3}
	fp := Fingerprint{Kind: "shuffle", Params: []Param{{"parts", "12"}, {"owners", "a=b"}, {"", ""}}}
	f.Add(byte(kindHello), h.encode())
	f.Add(byte(kindProbeReply), a.encode())
	f.Add(byte(kindOpen), fp.encode())
	f.Add(byte(kindOpen), []byte{})
	f.Fuzz(func(t *testing.T, kd byte, body []byte) {
		var again []byte
		var err error
		switch kind(kd) {
		case kindHello:
			var h *hello
			if h, err = decodeHello(body); err == nil {
				again = h.encode()
			}
		case kindProbeReply:
			var a answer
			if a, err = decodeAnswer(body); err == nil {
				again = a.encode()
			}
		case kindOpen:
			var g Fingerprint
			if g, err = decodeFingerprint(body); err == nil {
				again = g.encode()
				if same := string(body) == string(fp.encode()); same && len(fp.diff(g)) > 0 {
					t.Fatalf("equal, but %q differs", fp.diff(g))
				}
			}
		default:
			return
		}
		switch {
		case err != nil && !errors.Is(err, errFrame):
			t.Fatalf("error of another class: %v", err)
		case err == nil && !bytes.Equal(again, body):
			t.Fatalf("encodes to\n%x, not\n%x", again, body)
		}
	})
}

// FuzzSeqSet compares the set with one that remembers each number. Runs are two
// bytes: where they start and how long they are.
func FuzzSeqSet(f *testing.F) {
	f.Add([]byte{0, 1, 1, 1, 2, 1})
	f.Add([]byte{4, 2, 0, 2, 2, 2, 3, 1})
	f.Add([]byte{9, 1, 3, 1, 6, 2, 0, 3, 4, 2, 8, 1})
	f.Fuzz(func(t *testing.T, runs []byte) {
		var s seqSet
		seen := map[uint64]bool{}
		for ; len(runs) >= 2; runs = runs[2:] {
			from, n := uint64(runs[0]), uint64(runs[1]%8)+1
			fresh := true
			for i := from; i < from+n; i++ {
				fresh = fresh && !seen[i]
			}
			if s.add(from, n) != fresh {
				t.Fatalf("add %d numbers from %d: %v, want %v; %+v", n, from, !fresh, fresh, s)
			}
			for i := from; fresh && i < from+n; i++ {
				seen[i] = true
			}
			end := s.low
			for _, r := range s.runs {
				if r.from <= end || r.to <= r.from {
					t.Fatalf("runs out of order, or they touch: %+v", s)
				}
				end = r.to
			}
		}
	})
}
