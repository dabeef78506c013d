package tables

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluice-engine/sluice/buffer"
)

// window is how many rows are split at once; it bounds scratch memory.
const window = 1 << 20

// splitter packs rows into chunks of bounded size, one for a single loop.
type splitter struct {
	codec *Codec
	plan  *plan
	mem   *buffer.Resource
	max   int64 // bytes of a body
	emit  func(rows int, d *buffer.PackedData) bool
	err   error
}

// rows packs the rows listed, counted from base, or the n from base. It
// reports whether to go on.
func (s *splitter) rows(ctx context.Context, batch arrow.RecordBatch, base int, rows []int32, n int) bool {
	p := s.plan
	p.reset()
	p.add(batch, base, rows, n)
	err := p.chunk()
	if n > 1 && (errors.Is(err, errTooLong) || err == nil && p.body > s.max) {
		return s.parts(ctx, batch, base, rows, n, s.guess(n, err))
	}
	if err != nil {
		s.err = err
		return false
	}
	d, err := s.codec.emit(ctx, s.mem, p)
	if err != nil {
		s.err = err
		return false
	}
	return s.emit(n, d)
}

// guess gives the rows per part that would make parts of equal size fit.
func (s *splitter) guess(n int, err error) int {
	if err != nil {
		return (n + 1) / 2
	}
	padding := int64(len(s.plan.pieces)) * 3 * bodyAlign
	parts := s.plan.body/max(s.max-padding, 1) + 1
	if parts >= int64(n) {
		return max(n/2, 1) // mostly padding: halving tells
	}
	return min((n+int(parts)-1)/int(parts), n-1)
}

// parts packs the rows in parts of step rows.
func (s *splitter) parts(ctx context.Context, batch arrow.RecordBatch, base int, rows []int32, n, step int) bool {
	for at := 0; at < n; at += step {
		m := min(step, n-at)
		var ok bool
		if rows == nil {
			ok = s.rows(ctx, batch, base+at, nil, m)
		} else {
			ok = s.rows(ctx, batch, base, rows[at:at+m], m)
		}
		if !ok {
			return false
		}
	}
	return true
}
