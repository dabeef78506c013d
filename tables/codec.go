package tables

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/zeebo/xxh3"

	"github.com/sluice-engine/sluice/buffer"
)

// A Codec packs the rows of one schema into chunks and makes batches of them
// again. Ranks that exchange chunks make their Codecs of equal schemas: names,
// types and nullability; metadata does not matter. A chunk carries the
// fingerprint of its schema, about thirty bytes of description in all, and
// Unpack refuses a chunk of another one. A Codec never changes and serves any
// number of goroutines.
type Codec struct {
	tree        *tree
	encoded     []byte // the schema
	fingerprint uint64
	describing  bool
}

// NewCodec returns the Codec of a schema. It refuses types it cannot pack.
func NewCodec(schema *arrow.Schema) (*Codec, error) {
	t, err := compile(schema)
	if err != nil {
		return nil, fmt.Errorf("tables: codec: %w", err)
	}
	enc, err := encodeSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("tables: codec: %w", err)
	}
	return &Codec{tree: t, encoded: enc, fingerprint: xxh3.Hash(enc)}, nil
}

// Describing returns a Codec of the same schema whose chunks carry the schema,
// so that the function Unpack can read them without a Codec.
func (c *Codec) Describing() *Codec {
	d := *c
	d.describing = true
	return &d
}

// Schema returns the schema, as given to NewCodec.
func (c *Codec) Schema() *arrow.Schema { return c.tree.schema }

// Fingerprint returns the number that chunks of this schema carry.
func (c *Codec) Fingerprint() uint64 { return c.fingerprint }

// Pack copies the batch into one chunk, in Host memory of mem, waiting for it
// until ctx ends. Dictionaries are reduced to the values in use. A batch that
// is too large for one chunk is an error, see Split: it has 2^31 rows, or more
// than 2 GiB in a column of 32 bit offsets, or more than 2^20 rows in almost no
// bytes.
func (c *Codec) Pack(ctx context.Context, mem *buffer.Resource, batch arrow.RecordBatch) (*buffer.PackedData, error) {
	if err := c.tree.verify(batch, &checker{}); err != nil {
		return nil, fmt.Errorf("tables: pack: %w", err)
	}
	if err := fits(batch.NumRows(), maxRows); err != nil {
		return nil, fmt.Errorf("tables: pack %d rows: %w", batch.NumRows(), err)
	}
	p := newPlan(c.tree)
	p.add(batch, 0, nil, int(batch.NumRows()))
	if err := p.chunk(); err != nil {
		return nil, fmt.Errorf("tables: pack: %w", err)
	}
	return c.emit(ctx, mem, p)
}

// Split packs the batch into chunks whose body is at most maxChunk bytes, in
// the order of the rows. A row is never split: one that is larger makes a chunk
// of its own. A batch without rows makes no chunk. The chunk is the loop's; an
// error comes last.
func (c *Codec) Split(ctx context.Context, mem *buffer.Resource, batch arrow.RecordBatch, maxChunk int64) iter.Seq2[*buffer.PackedData, error] {
	return func(yield func(*buffer.PackedData, error) bool) {
		if maxChunk < 1 {
			yield(nil, fmt.Errorf("tables: split: chunks of %d bytes", maxChunk))
			return
		}
		if err := c.tree.verify(batch, &checker{}); err != nil {
			yield(nil, fmt.Errorf("tables: split: %w", err))
			return
		}
		s := splitter{codec: c, plan: newPlan(c.tree), mem: mem, max: maxChunk}
		s.emit = func(_ int, d *buffer.PackedData) bool { return yield(d, nil) }
		for at := int64(0); at < batch.NumRows(); at += window {
			if !s.rows(ctx, batch, int(at), nil, int(min(window, batch.NumRows()-at))) {
				break
			}
		}
		if s.err != nil {
			yield(nil, fmt.Errorf("tables: split: %w", s.err))
		}
	}
}

// verify checks that the batch is one of the tree, and sound.
func (t *tree) verify(batch arrow.RecordBatch, chk *checker) error {
	if err := t.match(batch); err != nil {
		return err
	}
	for i, n := range t.cols {
		d := batch.Column(i).Data()
		if err := chk.check(n, d, d.Offset(), int(batch.NumRows())); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}

// emit makes a chunk of what p has laid out.
func (c *Codec) emit(ctx context.Context, mem *buffer.Resource, p *plan) (*buffer.PackedData, error) {
	d, err := p.fill(ctx, mem)
	if err != nil {
		return nil, fmt.Errorf("tables: pack: %w", err)
	}
	h := header{rows: p.rows, fingerprint: c.fingerprint}
	size := metaHeader + 3*len(p.pieces) + 16
	if c.describing {
		h.flags = flagSchema
		size += len(c.encoded)
	}
	meta := h.append(make([]byte, 0, size))
	if c.describing {
		meta = appendString(meta, string(c.encoded))
	}
	return &buffer.PackedData{Meta: p.appendNumbers(meta), Data: d}, nil
}

// fill writes the body into memory of its own; nil if there is none.
func (p *plan) fill(ctx context.Context, mem *buffer.Resource) (*buffer.Buffer, error) {
	if p.body == 0 {
		return nil, nil
	}
	v, err := mem.Reserve(ctx, p.body, buffer.Host)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	b, err := v.Alloc(p.body, nil)
	if err != nil {
		return nil, err
	}
	err = b.OnHost(ctx, func(body []byte) error {
		p.write(body)
		return nil
	})
	if err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}
