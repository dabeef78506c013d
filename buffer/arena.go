package buffer

import (
	"math"
	"sync"
	"syscall"
)

// An Arena is host memory cut into blocks for the Resources of the ranks of one
// process. Freed blocks are kept for the next ones, so that in a steady state no
// page is touched for the first time. It gives pages back to the system before
// those it has touched exceed the sum of its Resources' Host limits, and all of
// them once its last Resource is closed and its last block is free.
type Arena struct {
	mu      sync.Mutex
	cached  freeSpans
	clean   freeSpans
	maps    []*mapping
	retired *span // span records to use again, through fwd

	resources int
	unlimited int   // Resources without a Host limit
	limits    int64 // sum of the other Resources' Host limits
	live      int64 // spans with live blocks

	mapped    int64
	footprint int64
	used      int64
	carved    int64
	trimmed   int64
	mapCalls  int64
}

// ArenaStats is a snapshot of an Arena, in bytes where not said otherwise.
type ArenaStats struct {
	Mapped      int64 // address space taken
	Footprint   int64 // pages counted as touched: in blocks or kept for blocks
	Used        int64 // pages with live blocks
	Cached      int64 // Footprint less Used: kept for blocks
	Carved      int64 // taken into Footprint so far; does not grow in a steady state
	Trimmed     int64 // given back to the system so far
	RegionBytes int64 // unit in which Footprint grows while there is room, see Resource
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
		MapCalls: a.mapCalls,
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

// take returns a live span of that many pages.
func (a *Arena) take(pages int64) (*span, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.takeLocked(pages)
	if err != nil {
		return nil, err
	}
	a.live++
	a.used += s.bytes()
	return s, nil
}

// giveBack takes a span without live blocks back.
func (a *Arena) giveBack(s *span) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= s.bytes()
	a.returnLocked(s, spanCached)
	if a.live--; a.live == 0 {
		a.unmapUnusedLocked()
	}
}

// unmapUnusedLocked gives everything back if nothing refers to a.
func (a *Arena) unmapUnusedLocked() {
	if a.resources > 0 || a.live > 0 {
		return
	}
	for _, m := range a.maps {
		m.unmap()
	}
	a.maps, a.retired = nil, nil
	a.cached, a.clean = freeSpans{}, freeSpans{}
	a.mapped, a.footprint = 0, 0
}

// trimLocked gives at least need bytes of free pages back to the system, or all
// there are.
func (a *Arena) trimLocked(need int64) {
	if need <= 0 {
		return
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
