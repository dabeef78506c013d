package tables

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/sluice-engine/sluice/buffer"
)

// bodyOf copies b into memory of its own.
func bodyOf(t testing.TB, mem *buffer.Resource, b []byte) *buffer.Buffer {
	v, err := mem.Reserve(ctx, int64(len(b)), buffer.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	d, err := v.Alloc(int64(len(b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.OnHost(ctx, func(p []byte) error { copy(p, b); return nil }); err != nil {
		t.Fatal(err)
	}
	return d
}

func bytesIn(t testing.TB, d *buffer.Buffer) (out []byte) {
	if d == nil {
		return nil
	}
	if err := d.OnHost(ctx, func(p []byte) error { out = slices.Clone(p); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// FuzzUnpack feeds chunks that a peer could send: whatever they hold, Unpack
// gives an error, or a batch that everything can be done with. Faults F17 and S3.
func FuzzUnpack(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	mem := newResource(f)
	for _, dt := range allTypes() {
		for _, rows := range []int{0, 9} {
			b := randomBatch(f, memory.DefaultAllocator, r, schemaOf(dt), rows)
			c := newCodec(f, b.Schema())
			d, err := c.Pack(ctx, mem, b)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(c.encoded, uint32(rows), d.Meta[metaHeader:], bytesIn(f, d.Data))
			d.Release()
			b.Release()
		}
	}
	f.Fuzz(func(t *testing.T, schema []byte, rows uint32, numbers, body []byte) {
		h := header{flags: flagSchema, rows: int(rows), fingerprint: xxh3.Hash(schema)}
		meta := append(appendString(h.append(nil), string(schema)), numbers...)
		d := &buffer.PackedData{Meta: meta, Data: bodyOf(t, mem, body)}
		got, err := Unpack(ctx, d)
		if err != nil {
			d.Release()
			return
		}
		defer got.Release()
		if got.NumRows() != int64(rows) {
			t.Fatalf("%d rows of %d", got.NumRows(), rows)
		}
		if total := int64(rows) + sizeOfAll(got); total > 10_000 {
			return // mostly of no bytes each: nothing to look at
		}
		exercise(t, mem, got)
	})
}

// sizeOfAll counts the values of all arrays, nested ones included.
func sizeOfAll(b arrow.RecordBatch) (n int64) {
	var count func(d arrow.ArrayData)
	count = func(d arrow.ArrayData) {
		n += int64(d.Len())
		for _, kid := range d.Children() {
			count(kid)
		}
		if dict := dictOf(d); dict != nil {
			count(dict)
		}
	}
	for _, c := range b.Columns() {
		count(c.Data())
	}
	return n
}

// exercise does with the batch what a user may do.
func exercise(t *testing.T, mem *buffer.Resource, b arrow.RecordBatch) {
	// Whether text is UTF-8 is left to the caller, as the values of rows are.
	if err := array.ValidateRecordFull(b); err != nil && !strings.Contains(err.Error(), "valid utf8") {
		t.Fatal(err)
	}
	want := rowTexts(b)
	sum := sumOf(t, b)
	c := newCodec(t, b.Schema())
	d, err := c.Pack(ctx, mem, b)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Unpack(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Release()
	if got := rowTexts(again); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if got := sumOf(t, again); got != sum {
		t.Fatalf("sum %v, want %v", got, sum)
	}
}

// FuzzHeader feeds metadata from its first byte.
func FuzzHeader(f *testing.F) {
	c := newCodec(f, schemaOf(tInt32, tString))
	good := header{rows: 2, fingerprint: c.fingerprint}.append(nil)
	f.Add(append(good, 0, 0, 3))
	f.Add(good)
	f.Add(appendString(header{flags: flagSchema, fingerprint: c.fingerprint}.append(nil), string(c.encoded)))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, meta []byte) {
		d := &buffer.PackedData{Meta: meta}
		for _, unpack := range []func() (arrow.RecordBatch, error){
			func() (arrow.RecordBatch, error) { return c.Unpack(ctx, d) },
			func() (arrow.RecordBatch, error) { return Unpack(ctx, d) },
		} {
			if b, err := unpack(); err == nil {
				b.Release()
			}
			d.Meta = meta
		}
	})
}

// TestUnpackDamaged changes chunks of all types byte by byte: an error that
// says so, or rows that differ in value only.
func TestUnpackDamaged(t *testing.T) {
	r, heap, mem := newRand(t), checked(t), newResource(t)
	for _, dt := range allTypes() {
		b := randomBatch(t, heap, r, schemaOf(dt), 20)
		c := newCodec(t, b.Schema())
		d, err := c.Pack(ctx, mem, b)
		if err != nil {
			t.Fatal(err)
		}
		meta, body := slices.Clone(d.Meta), bytesIn(t, d.Data)
		d.Release()
		b.Release()
		for range 100 {
			m, p := slices.Clone(meta), slices.Clone(body)
			if i := r.IntN(len(m) + len(p)); i < len(m) {
				m[i] ^= byte(1 + r.IntN(255))
			} else {
				p[i-len(m)] ^= byte(1 + r.IntN(255))
			}
			d := &buffer.PackedData{Meta: m, Data: bodyOf(t, mem, p)}
			got, err := c.Unpack(ctx, d)
			if err == nil {
				if sizeOfAll(got) < 10_000 {
					exercise(t, mem, got)
				}
				got.Release()
				continue
			}
			if ce := new(buffer.CorruptError); !errors.As(err, &ce) && !errors.Is(err, ErrSchema) {
				t.Errorf("%v: error %v", dt, err)
			}
			d.Release()
		}
	}
}

// TestUnpackLengths gives chunks whose body is longer or shorter than said,
// and metadata that ends early or late.
func TestUnpackLengths(t *testing.T) {
	r, heap, mem := newRand(t), checked(t), newResource(t)
	b := randomBatch(t, heap, r, schemaOf(tInt64, tString, arrow.ListOf(tInt32)), 20)
	defer b.Release()
	c := newCodec(t, b.Schema())
	whole, err := c.Describing().Pack(ctx, mem, b)
	if err != nil {
		t.Fatal(err)
	}
	meta, body := slices.Clone(whole.Meta), bytesIn(t, whole.Data)
	whole.Release()
	refuse := func(what string, m, p []byte) {
		d := &buffer.PackedData{Meta: m, Data: bodyOf(t, mem, p)}
		defer d.Release()
		if _, err := Unpack(ctx, d); !errors.As(err, new(*buffer.CorruptError)) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	for n := range meta {
		if n != metaHeader { // a header alone has no flag set wrong, but no schema either
			refuse("short metadata", meta[:n], body)
		}
	}
	refuse("long metadata", append(slices.Clone(meta), 0), body)
	refuse("short body", meta, body[:len(body)-64])
	refuse("body cut within", meta, body[:len(body)-1])
	refuse("no body", meta, nil)
	refuse("long body", meta, append(slices.Clone(body), make([]byte, 64)...))
	many := slices.Clone(meta)
	binary.LittleEndian.PutUint32(many[4:], 1<<31-1)
	refuse("many rows", many, body)
	binary.LittleEndian.PutUint32(many[4:], 1<<31)
	refuse("too many rows", many, body)
}

// TestBodyIsClean: what a body does not use is zero, whatever the memory held.
func TestBodyIsClean(t *testing.T) {
	mem, heap := newResource(t), checked(t)
	dirty := bodyOf(t, mem, slices.Repeat([]byte{0xaa}, 4096))
	schema := schemaOf(arrow.FixedWidthTypes.Boolean, tInt8, tString)
	b := batchOf(schema, 3, fromJSON(t, arrow.FixedWidthTypes.Boolean, `[true, null, true]`), fromJSON(t, tInt8, `[1, 2, 3]`), fromJSON(t, tString, `["x", "y", "z"]`))
	defer b.Release()
	dirty.Release()
	_ = heap
	d, err := newCodec(t, schema).Pack(ctx, mem, b)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	body := bytesIn(t, d.Data)
	want := make([]byte, 5*64)
	want[0], want[64] = 0b101, 0b101
	copy(want[128:], []byte{1, 2, 3})
	copy(want[192:], []byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0})
	copy(want[256:], "xyz")
	if !slices.Equal(body, want) {
		t.Errorf("body % x", body)
	}
	if got, want := d.Meta[metaHeader:], []byte{1, 0, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("numbers % x, want % x", got, want)
	}
}
