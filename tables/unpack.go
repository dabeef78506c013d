package tables

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"

	"github.com/sluice-engine/sluice/buffer"
)

// Unpack makes a batch of a chunk without copying it: the arrays refer to the
// chunk's memory, which stays charged until the last of them is released. On
// success the chunk belongs to the batch; on an error it is still the
// caller's. An error that matches *buffer.CorruptError says that the chunk
// cannot have been made by Pack. The chunk must be in host memory.
func (c *Codec) Unpack(ctx context.Context, d *buffer.PackedData) (arrow.RecordBatch, error) {
	h, rest, err := parseHeader(d.Meta)
	if err == nil && h.flags&flagSchema != 0 {
		_, rest, err = cutSchema(rest)
	}
	if err != nil {
		return nil, corrupt(err)
	}
	if h.fingerprint != c.fingerprint {
		return nil, fmt.Errorf("tables: unpack: %w: chunk has fingerprint %016x, expected is %016x", ErrSchema, h.fingerprint, c.fingerprint)
	}
	return c.tree.unpack(ctx, d, h.rows, rest)
}

// Unpack makes a batch of a chunk that carries its schema (Codec.Describing),
// under the rules of Codec.Unpack. Extension types come back as their storage
// types, and without metadata.
func Unpack(ctx context.Context, d *buffer.PackedData) (arrow.RecordBatch, error) {
	h, rest, err := parseHeader(d.Meta)
	if err != nil {
		return nil, corrupt(err)
	}
	if h.flags&flagSchema == 0 {
		return nil, fmt.Errorf("tables: unpack: %w: the chunk carries no schema", ErrSchema)
	}
	enc, rest, err := cutSchema(rest)
	if err != nil {
		return nil, corrupt(err)
	}
	if f := xxh3.Hash(enc); f != h.fingerprint {
		return nil, corrupt(fmt.Errorf("schema has fingerprint %016x, the header says %016x", f, h.fingerprint))
	}
	schema, err := decodeSchema(enc)
	if err != nil {
		return nil, corrupt(fmt.Errorf("schema: %w", err))
	}
	t, err := compile(schema)
	if err != nil {
		return nil, corrupt(err)
	}
	return t.unpack(ctx, d, h.rows, rest)
}

func corrupt(err error) error {
	return fmt.Errorf("tables: unpack: %w", &buffer.CorruptError{Where: "table chunk: " + err.Error(), Peer: -1})
}

// cutSchema takes the encoded schema off the front.
func cutSchema(b []byte) (enc, rest []byte, err error) {
	r := schemaReader{rest: b}
	n, err := r.number(uint64(len(b)))
	if err != nil {
		return nil, nil, err
	}
	if n > len(r.rest) {
		return nil, nil, errShort
	}
	return r.rest[:n], r.rest[n:], nil
}

func (t *tree) unpack(ctx context.Context, d *buffer.PackedData, rows int, nums []byte) (arrow.RecordBatch, error) {
	size := int64(0)
	if d.Data != nil {
		size = d.Data.Len()
	}
	places, err := t.parseNumbers(nums, rows, size)
	if err != nil {
		return nil, corrupt(err)
	}
	var body []byte
	if size > 0 {
		if body, err = hostBytes(ctx, d.Data); err != nil {
			return nil, fmt.Errorf("tables: unpack: %w", err)
		}
	}
	mem := &lender{}
	b := builder{places: places, root: memory.NewBufferWithAllocator(body, mem)}
	batch, err := b.batch(t, rows)
	if err != nil {
		return nil, corrupt(err)
	}
	if d.Data != nil {
		mem.body = d.Data.Take()
		d.Data = nil
	}
	b.root.Release()
	return batch, nil
}

// hostBytes gives the bytes of b for as long as b lives. Keeping them beyond
// the closure is sound only because of who calls: the sole owner of b, who
// neither moves nor writes nor releases it until the bytes are out of use.
// Blocks of host memory stay where they are until then.
func hostBytes(ctx context.Context, b *buffer.Buffer) (body []byte, err error) {
	err = b.OnHost(ctx, func(p []byte) error {
		body = p
		return nil
	})
	return body, err
}

// lender releases a chunk's memory when the last Arrow buffer over it is gone.
// It is the memory.Allocator of those buffers, which are never resized, so it
// lends but never allocates.
type lender struct {
	body *buffer.Buffer // nil: nothing to release
}

func (l *lender) Allocate(size int) []byte { return make([]byte, size) }

func (l *lender) Reallocate(size int, b []byte) []byte {
	return append(make([]byte, 0, size), b[:min(size, len(b))]...)[:size]
}

func (l *lender) Free([]byte) {
	if l.body != nil {
		l.body.Release()
	}
}

// builder makes arrays over a body laid out as places say.
type builder struct {
	places []place
	root   *memory.Buffer // the body
}

// batch makes and verifies the arrays of all columns.
func (b *builder) batch(t *tree, rows int) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, 0, len(t.cols))
	defer func() {
		for _, col := range cols {
			col.Release()
		}
	}()
	chk := checker{strict: true}
	for _, n := range t.cols {
		d := b.data(n)
		err := chk.check(n, d, 0, rows)
		if err == nil {
			cols = append(cols, array.MakeFromData(d))
		}
		d.Release()
		if err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(t.schema, cols, int64(rows)), nil
}

// slice lends buffer i of the node.
func (b *builder) slice(n *node, i int) *memory.Buffer {
	pl := &b.places[n.id]
	return memory.SliceBuffer(b.root, int(pl.pos[i]), int(pl.lens[i]))
}

// data describes the array of a node.
func (b *builder) data(n *node) *array.Data {
	pl := &b.places[n.id]
	bufs := make([]*memory.Buffer, 1, 3)
	nulls := pl.nulls
	if pl.lens[0] > 0 {
		bufs[0] = b.slice(n, 0)
	}
	switch n.kind {
	case kNull:
		nulls = pl.rows
	case kBits, kFixed, kDict, kList32, kList64, kSparse:
		bufs = append(bufs, b.slice(n, 1))
	case kVar32, kVar64, kListView32, kListView64, kDense:
		bufs = append(bufs, b.slice(n, 1), b.slice(n, 2))
	case kView:
		if bufs = append(bufs, b.slice(n, 1)); pl.extent > 0 {
			bufs = append(bufs, b.slice(n, 2))
		}
	}
	kids := make([]arrow.ArrayData, 0, len(n.kids)+1)
	if n.kind == kRunEnd {
		kids = append(kids, b.runEnds(n))
	}
	for _, kid := range n.kids {
		kids = append(kids, b.data(kid))
	}
	var d *array.Data
	if n.kind == kDict {
		d = array.NewDataWithDictionary(n.logical, pl.rows, bufs, nulls, 0, kids[0].(*array.Data))
	} else {
		d = array.NewData(n.logical, pl.rows, bufs, kids, nulls, 0)
	}
	drop(bufs) // d holds its own references
	for _, kid := range kids {
		kid.Release()
	}
	return d
}

func drop(bufs []*memory.Buffer) {
	for _, b := range bufs {
		if b != nil {
			b.Release()
		}
	}
}

// runEnds describes the run ends, which are a child array in Arrow.
func (b *builder) runEnds(n *node) *array.Data {
	dt := n.storage.(*arrow.RunEndEncodedType).RunEnds()
	bufs := []*memory.Buffer{nil, b.slice(n, 1)}
	defer drop(bufs)
	return array.NewData(dt, int(b.places[n.id].extent), bufs, nil, 0, 0)
}
