package shuffle

import (
	"context"
	"encoding/binary"
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
			c := cursor{item: it}
			more := true
			for more && !c.empty() {
				d := c.next()
				if d.Data != nil {
					d.Data.SetHolder(buffer.HeldByCaller)
				}
				more = yield(d, nil)
			}
			s.putBack(part, c.item)
			if !more {
				return
			}
		}
	}
}

// cursor takes the chunks of one item. What the chunks of a run need on the Go
// heap is allocated for several at a time.
type cursor struct {
	item
	packed []buffer.PackedData
	meta   []byte
}

// Chunks of a run share allocations of up to this much; a chunk that is kept
// keeps its neighbours' share too.
const (
	sharedPacked = 16      // chunks
	sharedMeta   = 1 << 10 // bytes
)

// next takes the next chunk. Payloads of small ones are views into their slab,
// which lives until the last view is released.
func (c *cursor) next() *buffer.PackedData {
	if c.data != nil {
		d := c.data
		c.data = nil
		return d
	}
	b := c.slab.mem[c.off:]
	data, meta := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))
	if len(c.packed) == 0 {
		c.packed = make([]buffer.PackedData, min(c.n, sharedPacked))
	}
	if len(c.meta) < meta {
		c.meta = make([]byte, max(meta, min(int(c.n)*meta, sharedMeta)))
	}
	d := &c.packed[0]
	d.Meta = c.meta[:meta:meta]
	copy(d.Meta, b[slabHeader+pad8(data):])
	if data > 0 {
		d.Data = c.slab.buf.Slice(int64(c.off)+slabHeader, int64(data))
	}
	c.packed, c.meta = c.packed[1:], c.meta[meta:]
	c.off += int32(slabRecord(meta, data))
	c.n--
	return d
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
