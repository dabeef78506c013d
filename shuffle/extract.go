package shuffle

import (
	"context"
	"fmt"
	"iter"

	"github.com/sluice-engine/sluice/buffer"
)

// Extract waits until p is complete and yields its chunks, which become the
// caller's, to be released. The chunks of one source come in the order of their
// insertion. Stopping early leaves the rest extractable. An error comes once
// and last; ErrNotLocal if another rank owns p.
//
// The payload of a small chunk is a view: it keeps up to 64 KiB alive until it
// is released, along with the other chunks in there.
func (s *ShufflerAsync) Extract(ctx context.Context, p PartID) iter.Seq2[*buffer.PackedData, error] {
	return func(yield func(*buffer.PackedData, error) bool) {
		part := s.e.index[p]
		if part == nil {
			yield(nil, fmt.Errorf("shuffle: extract partition %d: %w", p, ErrNotLocal))
			return
		}
		if err := s.await(ctx, fmt.Sprintf("extract partition %d", p), func() bool { return part.complete && s.err == nil && !s.closed }); err != nil {
			yield(nil, err)
			return
		}
		for {
			d, err := s.take(part)
			if err != nil {
				yield(nil, fmt.Errorf("shuffle: extract partition %d: %w", p, err))
				return
			}
			if d == nil || !yield(d, nil) {
				return
			}
		}
	}
}

// take removes the next chunk of a complete partition; nil after the last.
func (s *ShufflerAsync) take(part *partition) (*buffer.PackedData, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.err != nil {
		return nil, s.err
	}
	d, ok := part.take()
	if !ok {
		return nil, nil
	}
	if d.Data != nil {
		d.Data.SetHolder(buffer.HeldByCaller)
	}
	return d, nil
}
