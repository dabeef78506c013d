package buffer

import (
	"math/bits"
	"sync"
	"unsafe"
)

// smallBlocks cuts spans of an Arena into blocks that share pages, for one
// Resource: ranks of one process that all work on small blocks would spend their
// time on waiting for a lock and for each other's cache lines. A block is given
// back to the smallBlocks it came from, whoever pays for it by then. A span
// without live blocks goes back to the Arena at once, which can trim it there.
//
// Its lock is taken before that of the Arena. It guards the fields free, all,
// fwd and back of its spans; the others are the Arena's.
type smallBlocks struct {
	arena *Arena

	mu      sync.Mutex
	partial [sharedBelow / minGap]spanList // spans with a free block, by smallIndex
}

// smallIndex is injective on the sizes of small blocks.
func smallIndex(size int64) int64 {
	if size < minGap {
		return size / 128 // 64: 0, 128: 1; 256 and above: see the next line
	}
	return 1 + size/minGap
}

func (m *smallBlocks) alloc(size int64) (*span, uint8, unsafe.Pointer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := &m.partial[smallIndex(size)]
	s := list.head
	if s == nil {
		pages, blocks := smallShape(size)
		var err error
		if s, err = m.arena.take(pages); err != nil {
			return nil, 0, nil, err
		}
		s.owner, s.size = m, uint32(size)
		s.all = ^uint64(0) >> (64 - blocks)
		s.free = s.all
		list.push(s)
	}
	index := uint8(bits.TrailingZeros64(s.free))
	s.free &= s.free - 1
	if s.free == 0 {
		list.remove(s)
	}
	return s, index, s.block(index), nil
}

func (m *smallBlocks) free(s *span, index uint8) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := &m.partial[smallIndex(int64(s.size))]
	if s.free == 0 {
		list.push(s)
	}
	s.free |= 1 << index
	if s.free == s.all {
		list.remove(s)
		m.arena.giveBack(s)
	}
}

// block returns a block of size bytes, a BlockSize above 0: its span, its index
// in a span of small blocks, and its address.
func (r *Resource) block(size int64) (*span, uint8, unsafe.Pointer, error) {
	if size < sharedBelow && size != pageSize {
		return r.small.alloc(size)
	}
	s, err := r.arena.take(size / pageSize)
	if err != nil {
		return nil, 0, nil, err
	}
	return s, 0, s.base, nil
}

// freeBlock gives the block of s with that index back.
func (s *span) freeBlock(index uint8) {
	if s.owner != nil {
		s.owner.free(s, index)
	} else {
		s.arena.giveBack(s)
	}
}
