package tables

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluice-engine/sluice/buffer"
)

// Concat copies the rows of the batches, in order, into one batch in Host
// memory of mem, waiting for it until ctx ends. The memory stays charged until
// the last reference to the batch or one of its columns is released. Different
// dictionaries of a column are merged; ordered ones must be equal. Without
// batches the result has no rows.
func (c *Codec) Concat(ctx context.Context, mem *buffer.Resource, batches ...arrow.RecordBatch) (arrow.RecordBatch, error) {
	p := newPlan(c.tree)
	var chk checker
	var rows int64
	for i, batch := range batches {
		if err := c.tree.verify(batch, &chk); err != nil {
			return nil, fmt.Errorf("tables: concat: batch %d: %w", i, err)
		}
		if rows += batch.NumRows(); rows > maxRows {
			return nil, fmt.Errorf("tables: concat: more than %d rows: %w", maxRows, errTooLong)
		}
		p.add(batch, 0, nil, int(batch.NumRows()))
	}
	if err := p.layout(); err != nil {
		return nil, fmt.Errorf("tables: concat: %w", err)
	}
	d, err := p.fill(ctx, mem)
	if err != nil {
		return nil, fmt.Errorf("tables: concat: %w", err)
	}
	var body []byte
	if d != nil {
		if body, err = hostBytes(ctx, d); err != nil {
			d.Release()
			return nil, fmt.Errorf("tables: concat: %w", err)
		}
	}
	places := make([]place, len(p.pieces))
	for i := range places {
		places[i] = p.pieces[i].place
	}
	b := builder{places: places, root: memory.NewBufferWithAllocator(body, &lender{body: d})}
	defer b.root.Release()
	batch, err := b.batch(c.tree, p.rows)
	if err != nil {
		return nil, fmt.Errorf("tables: concat: %w: %w", ErrInvalid, err)
	}
	return batch, nil
}
