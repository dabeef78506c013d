package buffer

import (
	"math"
	"math/bits"
	"sync"
	"syscall"
	"unsafe"
)

// An Arena is host memory cut into blocks for the Resources of the ranks of one
// process. Freed blocks are kept for the next ones, so that in a steady state no
// page is touched for the first time. It gives pages back to the system before
// those it has touched exceed the sum of its Resources' Host limits, and all of
// them once its last Resource is closed and its last block is free.
type Arena struct {
	mu      sync.Mutex
	small   [sharedBelow / minGap]smallSpans // by block size, see smallIndex
	cached  freeSpans
	clean   freeSpans
	maps    []*mapping
	retired *span // span records to use again, through fwd

	resources int
	unlimited int   // Resources without a Host limit
	limits    int64 // sum of the other Resources' Host limits
	blocks    int64 // live

	mapped    int64
	footprint int64
	used      int64
	carved    int64
	trimmed   int64
	mapCalls  int64
}

// smallSpans are the spans with free blocks of one size. One of them may be
// without a live block, lest a lone block takes and returns pages each time.
type smallSpans struct {
	partial spanList
	empty   *span
}

// ArenaStats is a snapshot of an Arena, in bytes where not said otherwise.
type ArenaStats struct {
	Mapped      int64 // address space taken
	Footprint   int64 // pages counted as touched: in blocks or kept for blocks
	Used        int64 // live blocks
	Cached      int64 // Footprint less Used
	Carved      int64 // taken into Footprint so far; does not grow in a steady state
	Trimmed     int64 // given back to the system so far
	RegionBytes int64 // unit in which Footprint grows while there is room, see Resource
	Blocks      int64 // number of live blocks
	MapCalls    int64 // number of mappings made so far
}

// NewArena returns an Arena without memory.
func NewArena() *Arena { return new(Arena) }

// Stats returns the current numbers.
func (a *Arena) Stats() ArenaStats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return ArenaStats{
		Mapped: a.mapped, Footprint: a.footprint, Used: a.used, Cached: a.footprint - a.used,
		Carved: a.carved, Trimmed: a.trimmed, RegionBytes: a.regionLocked(),
		Blocks: a.blocks, MapCalls: a.mapCalls,
	}
}

// join adds a Resource with the given Host limit.
func (a *Arena) join(limit int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resources++
	a.countLimitLocked(limit, 1)
}

// relimit replaces the Host limit of a Resource.
func (a *Arena) relimit(old, limit int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.countLimitLocked(old, -1)
	a.countLimitLocked(limit, 1)
	a.trimLocked(a.footprint - a.budgetLocked())
}

// leave removes a Resource with the given Host limit.
func (a *Arena) leave(limit int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.countLimitLocked(limit, -1)
	a.resources--
	a.trimLocked(a.footprint - a.budgetLocked())
	a.unmapUnusedLocked()
}

func (a *Arena) countLimitLocked(limit int64, sign int) {
	if limit == unlimitedBytes {
		a.unlimited += sign
		return
	}
	a.limits += int64(sign) * limit
}

// budgetLocked returns what the footprint may reach, in bytes.
func (a *Arena) budgetLocked() int64 {
	if a.unlimited > 0 {
		return math.MaxInt64
	}
	return a.limits
}

// regionLocked returns the unit in which the footprint grows: whole huge pages,
// or for small limits single pages.
func (a *Arena) regionLocked() int64 {
	if a.budgetLocked() >= 8*hugePage {
		return hugePage
	}
	return pageSize
}

// alloc returns a block of size bytes, a BlockSize above 0: its span, its index
// in a span of small blocks, and its address.
func (a *Arena) alloc(size int64) (s *span, index uint8, at unsafe.Pointer, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if size < sharedBelow && size != pageSize {
		s, index, err = a.allocSmallLocked(size)
	} else if s, err = a.takeLocked(size / pageSize); err == nil {
		s.size = 0
		a.used += s.bytes()
	}
	if err != nil {
		return nil, 0, nil, err
	}
	a.blocks++
	return s, index, s.block(index), nil
}

// free takes a block back.
func (a *Arena) free(s *span, index uint8) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.size == 0 {
		a.used -= s.bytes()
		a.returnLocked(s, spanCached)
	} else {
		a.freeSmallLocked(s, index)
	}
	a.blocks--
	if a.blocks == 0 {
		a.unmapUnusedLocked()
	}
}

// smallIndex is injective on the sizes of small blocks.
func smallIndex(size int64) int64 {
	if size < minGap {
		return size / 128 // 64: 0, 128: 1; 256 and above: see the next line
	}
	return 1 + size/minGap
}

func (a *Arena) allocSmallLocked(size int64) (*span, uint8, error) {
	c := &a.small[smallIndex(size)]
	s := c.partial.head
	if s == nil {
		var err error
		if s, err = a.newSmallLocked(size); err != nil {
			return nil, 0, err
		}
	}
	if s == c.empty {
		c.empty = nil
	}
	index := uint8(bits.TrailingZeros64(s.free))
	s.free &= s.free - 1
	if s.free == 0 {
		c.partial.remove(s)
	}
	a.used += size
	return s, index, nil
}

// newSmallLocked returns a span cut into blocks of size bytes.
func (a *Arena) newSmallLocked(size int64) (*span, error) {
	pages, blocks := smallShape(size)
	s, err := a.takeLocked(pages)
	if err != nil {
		return nil, err
	}
	s.size = uint32(size)
	s.all = ^uint64(0) >> (64 - blocks)
	s.free = s.all
	a.small[smallIndex(size)].partial.push(s)
	return s, nil
}

func (a *Arena) freeSmallLocked(s *span, index uint8) {
	size := int64(s.size)
	c := &a.small[smallIndex(size)]
	a.used -= size
	if s.free == 0 {
		c.partial.push(s)
	}
	s.free |= 1 << index
	if s.free != s.all {
		return
	}
	if c.empty == nil {
		c.empty = s
		return
	}
	c.partial.remove(s)
	a.returnLocked(s, spanCached)
}

// unmapUnusedLocked gives everything back if nothing refers to a.
func (a *Arena) unmapUnusedLocked() {
	if a.resources > 0 || a.blocks > 0 {
		return
	}
	for _, m := range a.maps {
		m.unmap()
	}
	a.maps, a.retired = nil, nil
	a.small = [sharedBelow / minGap]smallSpans{}
	a.cached, a.clean = freeSpans{}, freeSpans{}
	a.mapped, a.footprint = 0, 0
}

// trimLocked gives at least need bytes of free pages back to the system, or all
// there are.
func (a *Arena) trimLocked(need int64) {
	if need <= 0 {
		return
	}
	for i := range a.small {
		if c := &a.small[i]; c.empty != nil {
			c.partial.remove(c.empty)
			a.returnLocked(c.empty, spanCached)
			c.empty = nil
		}
	}
	for need > 0 {
		pages := roundUp(need, pageSize) / pageSize
		s, _ := a.cached.find(pages, pageSize)
		if s == nil {
			s = a.cached.longest()
		}
		if s == nil {
			return
		}
		a.cached.remove(s)
		if s.pages > pages {
			a.splitLocked(s, pages)
		}
		if !a.discard(s) {
			a.returnLocked(s, spanCached)
			return
		}
		need -= s.bytes()
		a.footprint -= s.bytes()
		a.trimmed += s.bytes()
		a.returnLocked(s, spanClean)
	}
}

// discard drops the pages of s. Without the second call the kernel could merge
// what is left of a huge page into a whole one again.
func (a *Arena) discard(s *span) bool {
	b := bytesAt(s.base, s.bytes())
	if syscall.Madvise(b, syscall.MADV_DONTNEED) != nil {
		return false
	}
	_ = syscall.Madvise(b, syscall.MADV_NOHUGEPAGE)
	return true
}
