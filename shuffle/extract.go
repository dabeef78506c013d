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
			it, err := s.take(part)
			if err != nil {
				yield(nil, fmt.Errorf("shuffle: extract partition %d: %w", p, err))
				return
			}
			if it.empty() {
				return
			}
			more := true
			for more {
				d, ok := it.next()
				if !ok {
					break
				}
				if d.Data != nil {
					d.Data.SetHolder(buffer.HeldByCaller)
				}
				more = yield(d, nil)
			}
			s.putBack(part, it)
			if !more {
				return
			}
		}
	}
}

// take removes the next item of a complete partition; an empty one after the
// last. Its chunks are then taken without the lock.
func (s *ShufflerAsync) take(part *partition) (item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return item{}, ErrClosed
	}
	if s.err != nil {
		return item{}, s.err
	}
	it, _ := part.items.Pop()
	return it, nil
}

// putBack returns what was not taken of an item.
func (s *ShufflerAsync) putBack(part *partition, it item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it.empty() || s.closed || s.err != nil {
		it.release()
		return
	}
	part.items.PushFront(it)
}
