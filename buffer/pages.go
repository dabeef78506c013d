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
// takes whole huge pages while there is room for them, else just what is missing,
// and makes room by giving other cached pages back.
func (a *Arena) growLocked(pages int64) (*span, error) {
	n := roundUp(pages*pageSize, hugePage)
	if a.regionLocked() == hugePage && n <= a.budgetLocked()-a.footprint {
		s, err := a.cleanLocked(n/pageSize, 0, hugePage)
		if err != nil {
			return nil, err
		}
		_ = syscall.Madvise(bytesAt(s.base, n), syscall.MADV_HUGEPAGE)
		return a.countLocked(s), nil
	}
	if s := a.extensibleLocked(pages); s != nil {
		return a.extendLocked(s, pages), nil
	}
	a.makeRoomLocked(pages)
	// With address space to spare behind it the place of a block can later hold a
	// somewhat larger one.
	s, err := a.cleanLocked(pages, pages/4, pageSize)
	if err != nil {
		return nil, err
	}
	return a.countLocked(s), nil
}

// extensibleLocked returns a cached span, at least half as long as asked for, that
// is long enough together with the clean pages after it; nil if there is none.
func (a *Arena) extensibleLocked(pages int64) *span {
	for b := bucketOf(pages); b > bucketOf(pages/2); b-- {
		for s := a.cached.buckets[b].head; s != nil; s = s.fwd {
			if n := s.next; n != nil && n.state == spanClean && s.pages+n.pages >= pages {
				return s
			}
		}
	}
	return nil
}

// extendLocked lengthens a span from extensibleLocked to that many pages.
func (a *Arena) extendLocked(s *span, pages int64) *span {
	a.cached.remove(s)
	s.state = spanLive // not to be given back below
	a.makeRoomLocked(pages - s.pages)
	n := s.next
	a.clean.remove(n)
	if missing := pages - s.pages; n.pages > missing {
		a.splitLocked(n, missing)
	}
	a.countLocked(n)
	return a.returnLocked(s, spanCached)
}

// makeRoomLocked keeps the footprint within the budget when that many pages are
// added, as far as there are cached pages to give back.
func (a *Arena) makeRoomLocked(pages int64) {
	a.trimLocked(pages*pageSize - (a.budgetLocked() - a.footprint))
}

// countLocked turns clean pages, which are in no set, into cached ones.
func (a *Arena) countLocked(s *span) *span {
	a.footprint += s.bytes()
	a.carved += s.bytes()
	return a.returnLocked(s, spanCached)
}

// cleanLocked returns a span of that many clean pages from a multiple of align
// bytes on, taken out of the free set. Behind it are gap more.
func (a *Arena) cleanLocked(pages, gap, align int64) (*span, error) {
	s, skip := a.clean.find(pages+gap, align)
	if s == nil {
		m, err := newMapping((pages + gap) * pageSize)
		if err != nil {
			return nil, err
		}
		a.maps = append(a.maps, m)
		a.mapped += int64(len(m.bytes))
		a.mapCalls++
		s = a.recordLocked(unsafe.Pointer(&m.bytes[0]), int64(len(m.bytes))/pageSize)
		a.clean.add(s)
		skip = 0
	}
	a.clean.remove(s)
	if skip > 0 {
		rest := a.splitLocked(s, skip)
		a.clean.add(s)
		a.clean.remove(rest)
		s = rest
	}
	if s.pages > pages {
		a.splitLocked(s, pages)
	}
	return s, nil
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
	s.owner, s.size, s.free, s.all = nil, 0, 0, 0
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
