package buffer

import (
	"fmt"
	"unsafe"
)

// Ranges returns the address ranges of the mappings of a.
func (a *Arena) Ranges() [][2]uintptr {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ranges [][2]uintptr
	for _, m := range a.maps {
		from := uintptr(unsafe.Pointer(&m.bytes[0]))
		ranges = append(ranges, [2]uintptr{from, from + uintptr(len(m.bytes))})
	}
	return ranges
}

// Check walks a and returns what is wrong with it, or nil.
func (a *Arena) Check() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	listed := make(map[*span]spanState)
	for state, set := range []*freeSpans{spanClean: &a.clean, spanCached: &a.cached} {
		for b := range set.buckets {
			for s := set.buckets[b].head; s != nil; s = s.fwd {
				if bucketOf(s.pages) != b || set.mask[b/64]&(1<<(b%64)) == 0 {
					return fmt.Errorf("span of %d pages in bucket %d, mask %x", s.pages, b, set.mask)
				}
				listed[s] = spanState(state)
			}
		}
	}
	starts := make(map[unsafe.Pointer]*span)
	for s := range listed {
		for s.prev != nil {
			s = s.prev
		}
		starts[s.base] = s
	}
	var footprint, free int64
	for _, m := range a.maps {
		at := unsafe.Pointer(&m.bytes[0])
		last := spanLive
		for s := starts[at]; s != nil; s = s.next {
			if s.base != at || s.pages <= 0 {
				return fmt.Errorf("span of %d pages at %p, want %p", s.pages, s.base, at)
			}
			if state, ok := listed[s]; ok != (s.state != spanLive) || ok && state != s.state {
				return fmt.Errorf("span of %d pages, state %d, listed %v as %d", s.pages, s.state, ok, state)
			}
			if s.state == last && last != spanLive {
				return fmt.Errorf("two neighbours in state %d", last)
			}
			last = s.state
			if s.state != spanClean {
				footprint += s.bytes()
			}
			if s.state != spanLive {
				free++
			}
			at = unsafe.Add(at, s.bytes())
		}
		// One without free spans is not reached from the free lists.
		if end := unsafe.Add(unsafe.Pointer(&m.bytes[0]), len(m.bytes)); at != end && starts[unsafe.Pointer(&m.bytes[0])] != nil {
			return fmt.Errorf("spans end at %p, mapping at %p", at, end)
		}
	}
	if footprint != a.footprint || free != int64(len(listed)) {
		return fmt.Errorf("footprint %d, spans %d; free spans %d, listed %d", a.footprint, footprint, free, len(listed))
	}
	return nil
}
