package buffer

import (
	"syscall"
	"unsafe"
)

// takeLocked returns a live span of that many pages.
func (a *Arena) takeLocked(pages int64) (*span, error) {
	s, _ := a.cached.find(pages, pageSize)
	if s == nil {
		var err error
		if s, err = a.growLocked(pages); err != nil {
			return nil, err
		}
	}
	a.cached.remove(s)
	if s.pages > pages {
		a.splitLocked(s, pages)
	}
	s.state = spanLive
	return s, nil
}

// growLocked adds a cached span of at least that many pages to the footprint. It
// takes whole huge pages while there is room for them, else just what is asked
// for, and makes room by giving other cached pages back.
func (a *Arena) growLocked(pages int64) (*span, error) {
	budget, region := a.budgetLocked(), a.regionLocked()
	want := roundUp(pages*pageSize, region)
	huge := region == hugePage && want <= budget-a.footprint
	if !huge {
		want, region = pages*pageSize, pageSize
		a.trimLocked(want - (budget - a.footprint))
	}
	s, skip := a.clean.find(want/pageSize, region)
	if s == nil {
		m, err := newMapping(want)
		if err != nil {
			return nil, err
		}
		a.maps = append(a.maps, m)
		a.mapped += int64(len(m.bytes))
		a.mapCalls++
		s, skip = a.recordLocked(unsafe.Pointer(&m.bytes[0]), int64(len(m.bytes))/pageSize), 0
		a.clean.add(s)
	}
	a.clean.remove(s)
	if skip > 0 {
		rest := a.splitLocked(s, skip)
		a.clean.remove(rest)
		a.clean.add(s)
		s = rest
	}
	if s.pages > want/pageSize {
		a.splitLocked(s, want/pageSize)
	}
	if huge {
		_ = syscall.Madvise(unsafe.Slice((*byte)(s.base), want), syscall.MADV_HUGEPAGE)
	}
	a.footprint += want
	a.carved += want
	return a.returnLocked(s, spanCached), nil
}

// splitLocked cuts s, which is in no free set, after that many pages. The rest
// is of the same state and put into the free set of it.
func (a *Arena) splitLocked(s *span, pages int64) *span {
	rest := a.recordLocked(unsafe.Add(s.base, pages*pageSize), s.pages-pages)
	rest.state = s.state
	rest.prev, rest.next = s, s.next
	if s.next != nil {
		s.next.prev = rest
	}
	s.next = rest
	s.pages = pages
	a.freeSet(rest.state).add(rest)
	return rest
}

// returnLocked makes s free in the given state, joined with free neighbours of
// that state, and returns the span that it is in then.
func (a *Arena) returnLocked(s *span, state spanState) *span {
	s.state = state
	s.size, s.free = 0, 0
	set := a.freeSet(state)
	if n := s.next; n != nil && n.state == state {
		set.remove(n)
		a.mergeLocked(s, n)
	}
	if p := s.prev; p != nil && p.state == state {
		set.remove(p)
		a.mergeLocked(p, s)
		s = p
	}
	set.add(s)
	return s
}

// mergeLocked adds n, the neighbour after s, to s.
func (a *Arena) mergeLocked(s, n *span) {
	s.pages += n.pages
	s.next = n.next
	if n.next != nil {
		n.next.prev = s
	}
	*n = span{fwd: a.retired}
	a.retired = n
}

// recordLocked returns a span record with no neighbours.
func (a *Arena) recordLocked(base unsafe.Pointer, pages int64) *span {
	s := a.retired
	if s == nil {
		s = new(span)
	} else {
		a.retired = s.fwd
	}
	*s = span{arena: a, base: base, pages: pages}
	return s
}

func (a *Arena) freeSet(state spanState) *freeSpans {
	if state == spanCached {
		return &a.cached
	}
	return &a.clean
}
