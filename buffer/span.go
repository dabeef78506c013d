package buffer

import (
	"math/bits"
	"unsafe"
)

// A span is a run of pages of one mapping: one large block, or up to 64 small
// blocks of one size, or free. The spans of a mapping form a list in the order
// of their addresses that covers it without gaps, and no two free neighbours
// have the same state.
type span struct {
	arena      *Arena
	owner      *smallBlocks // who cuts s into small blocks; nil: one large block
	base       unsafe.Pointer
	pages      int64
	prev, next *span  // neighbours by address
	fwd, back  *span  // in a list of free spans, or of small spans with a free block
	free, all  uint64 // small: bit sets of free blocks, and of all blocks
	size       uint32 // bytes of a small block
	state      spanState
}

type spanState uint8

const (
	spanClean  spanState = iota // free, no memory behind it
	spanCached                  // free, its pages counted as touched
	spanLive                    // holds blocks
)

// bytes returns the length of s.
func (s *span) bytes() int64 { return s.pages * pageSize }

// block returns the address of block i of a small span.
func (s *span) block(i uint8) unsafe.Pointer {
	return unsafe.Add(s.base, uintptr(i)*uintptr(s.size))
}

// smallShape returns how a span of blocks of the given size looks: it has as
// many pages as the odd part of size needs to leave no rest, at most 7, and so
// at most 64 blocks.
func smallShape(size int64) (pages, blocks int64) {
	power := size & -size
	return size / power, pageSize / power
}

// spanList is a doubly linked list through fwd and back.
type spanList struct{ head *span }

func (l *spanList) push(s *span) {
	s.fwd, s.back = l.head, nil
	if l.head != nil {
		l.head.back = s
	}
	l.head = s
}

func (l *spanList) remove(s *span) {
	if s.back == nil {
		l.head = s.fwd
	} else {
		s.back.fwd = s.fwd
	}
	if s.fwd != nil {
		s.fwd.back = s.back
	}
	s.fwd, s.back = nil, nil
}

// numBuckets covers spans of up to 2^34 pages: one bucket for each length below
// 8 pages, then four per doubling.
const numBuckets = 128

// freeSpans is a set of free spans that finds one of a given length quickly.
type freeSpans struct {
	mask    [numBuckets / 64]uint64 // buckets that are not empty
	buckets [numBuckets]spanList
}

// bucketOf returns the bucket that spans of that many pages are in. All spans of
// a bucket are shorter than all spans of the next.
func bucketOf(pages int64) int {
	if pages < 8 {
		return int(pages)
	}
	top := bits.Len64(uint64(pages)) - 1
	return min(8+(top-3)*4+int(pages>>(top-2)&3), numBuckets-1)
}

func (f *freeSpans) add(s *span) {
	b := bucketOf(s.pages)
	f.buckets[b].push(s)
	f.mask[b/64] |= 1 << (b % 64)
}

func (f *freeSpans) remove(s *span) {
	b := bucketOf(s.pages)
	f.buckets[b].remove(s)
	if f.buckets[b].head == nil {
		f.mask[b/64] &^= 1 << (b % 64)
	}
}

// after returns the first bucket from b on that is not empty, or numBuckets.
func (f *freeSpans) after(b int) int {
	for word := b / 64; word < len(f.mask); word++ {
		set := f.mask[word]
		if word == b/64 {
			set &= ^uint64(0) << (b % 64)
		}
		if set != 0 {
			return word*64 + bits.TrailingZeros64(set)
		}
	}
	return numBuckets
}

// find returns a span that holds pages pages from a multiple of align bytes on,
// and the pages before that point; nil if there is none. Of spans of about the
// same length it takes any, of different ones the shorter.
func (f *freeSpans) find(pages, align int64) (s *span, skip int64) {
	for b := f.after(bucketOf(pages)); b < numBuckets; b = f.after(b + 1) {
		for s := f.buckets[b].head; s != nil; s = s.fwd {
			at := int64(uintptr(s.base))
			skip := (roundUp(at, align) - at) / pageSize
			if s.pages >= skip+pages {
				return s, skip
			}
		}
	}
	return nil, 0
}

// longest returns one of the longest spans, or nil.
func (f *freeSpans) longest() *span {
	for word := len(f.mask) - 1; word >= 0; word-- {
		if f.mask[word] != 0 {
			return f.buckets[word*64+bits.Len64(f.mask[word])-1].head
		}
	}
	return nil
}
