package tables

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// write copies everything selected into body, whose length is p.body. Every
// byte of it is written: the memory may hold what others left there.
func (p *plan) write(body []byte) {
	for _, n := range p.tree.nodes {
		pc := &p.pieces[n.id]
		var buf [3][]byte
		for i, l := range pc.lens {
			from, to := pc.pos[i], pc.pos[i]+l
			buf[i] = body[from:to:to]
			clear(body[to : from+aligned(l)])
		}
		if pc.nulls > 0 {
			writeBits(buf[0], pc.spans, validity)
		}
		n.write(pc, buf[1], buf[2])
	}
}

// write fills the second and third buffer of one array.
func (n *node) write(pc *piece, second, third []byte) {
	switch n.kind {
	case kBits:
		writeBits(second, pc.spans, func(d arrow.ArrayData) []byte { return bytesOf(d, 1) })
	case kFixed:
		n.writeFixed(second, pc.spans)
	case kVar32:
		writeVar(arrow.GetData[int32](second), third, pc.spans)
	case kVar64:
		writeVar(arrow.GetData[int64](second), third, pc.spans)
	case kView:
		writeViews(arrow.GetData[arrow.ViewHeader](second), third, pc.spans)
	case kList32:
		writeOffsets(arrow.GetData[int32](second), pc.spans)
	case kList64:
		writeOffsets(arrow.GetData[int64](second), pc.spans)
	case kListView32:
		writeListViews(arrow.GetData[int32](second), arrow.GetData[int32](third), pc.spans)
	case kListView64:
		writeListViews(arrow.GetData[int64](second), arrow.GetData[int64](third), pc.spans)
	case kDict, kRunEnd:
		writeCodes(second, n.width, pc.codes)
	case kSparse:
		writeFixed(arrow.GetData[int8](second), pc.spans)
	case kDense:
		writeFixed(arrow.GetData[int8](second), pc.spans)
		writeCodes(third, 4, pc.codes)
	}
}

// writeBits copies one bit per row from the bitmap that of gives; from ones if
// it gives none.
func writeBits(dst []byte, spans []span, of func(arrow.ArrayData) []byte) {
	w := bitWriter{dst: dst}
	for i := range spans {
		s := &spans[i]
		if src := of(s.data); src == nil || s.rows == nil {
			w.run(src, s.base, s.n)
		} else {
			w.pick(src, s.base, s.rows)
		}
	}
	w.flush()
}

func (n *node) writeFixed(dst []byte, spans []span) {
	switch n.width {
	case 1:
		writeFixed(arrow.GetData[uint8](dst), spans)
	case 2:
		writeFixed(arrow.GetData[uint16](dst), spans)
	case 4:
		writeFixed(arrow.GetData[uint32](dst), spans)
	case 8:
		writeFixed(arrow.GetData[uint64](dst), spans)
	case 16:
		writeFixed(arrow.GetData[decimal128.Num](dst), spans)
	case 32:
		writeFixed(arrow.GetData[decimal256.Num](dst), spans)
	default:
		writeWide(dst, n.width, spans)
	}
}

func writeFixed[T arrow.FixedWidthType](dst []T, spans []span) {
	for i := range spans {
		s := &spans[i]
		if s.n == 0 {
			continue
		}
		src := values[T](s.data, 1)[s.base:]
		if s.rows == nil {
			copy(dst, src[:s.n])
		} else {
			out := dst[:len(s.rows)]
			for j, r := range s.rows {
				out[j] = src[r]
			}
		}
		dst = dst[s.n:]
	}
}

func writeWide(dst []byte, width int, spans []span) {
	for i := range spans {
		s := &spans[i]
		if s.n == 0 {
			continue
		}
		src := bytesOf(s.data, 1)[s.base*width:]
		if s.rows == nil {
			copy(dst, src[:s.n*width])
		} else {
			for j, r := range s.rows {
				copy(dst[j*width:(j+1)*width], src[int(r)*width:])
			}
		}
		dst = dst[s.n*width:]
	}
}

func writeVar[O int32 | int64](off []O, dst []byte, spans []span) {
	at, next := O(0), off
	for i := range spans {
		s := &spans[i]
		from, src := offsetsFrom[O](s), bytesOf(s.data, 2)
		if s.rows == nil {
			copy(dst[at:], src[from[0]:from[s.n]])
			at = shift(next, from[:s.n+1], at)
		} else {
			for j, r := range s.rows {
				next[j] = at
				at += O(move(dst[at:], src[from[r]:], int(from[r+1]-from[r])))
			}
		}
		next = next[s.n:]
	}
	next[0] = at
}

// move copies n bytes and gives n. Of short values it copies 16 bytes where
// both sides have them, which spares a call: what it writes too much belongs to
// the values that follow.
func move(dst, src []byte, n int) int {
	if n <= 16 && len(src) >= 16 && len(dst) >= 16 {
		binary.LittleEndian.PutUint64(dst, binary.LittleEndian.Uint64(src))
		binary.LittleEndian.PutUint64(dst[8:], binary.LittleEndian.Uint64(src[8:]))
		return n
	}
	return copy(dst, src[:n])
}

// shift writes the offsets from, all but the last, as they are when the first
// becomes at, and gives the last.
func shift[O int32 | int64](dst, from []O, at O) O {
	delta := at - from[0]
	last := len(from) - 1
	for j, o := range from[:last] {
		dst[j] = o + delta
	}
	return from[last] + delta
}

// writeOffsets writes the offsets of lists.
func writeOffsets[O int32 | int64](dst []O, spans []span) {
	at := O(0)
	for i := range spans {
		s := &spans[i]
		from := offsetsFrom[O](s)
		if s.rows == nil {
			at = shift(dst, from[:s.n+1], at)
		} else {
			for j, r := range s.rows {
				dst[j] = at
				at += from[r+1] - from[r]
			}
		}
		dst = dst[s.n:]
	}
	dst[0] = at
}

func writeListViews[O int32 | int64](off, size []O, spans []span) {
	at := O(0)
	for i := range spans {
		s := &spans[i]
		from, valid := values[O](s.data, 2), validity(s.data)
		for j := range s.n {
			k, l := s.at(j), O(0)
			if valid == nil || bitAt(valid, k) {
				l = from[k]
			}
			off[j], size[j] = at, l
			at += l
		}
		off, size = off[s.n:], size[s.n:]
	}
}

func writeViews(dst []arrow.ViewHeader, long []byte, spans []span) {
	at := 0
	for i := range spans {
		s := &spans[i]
		heads, bufs, valid := values[arrow.ViewHeader](s.data, 1), viewBufs(s.data), validity(s.data)
		for j := range s.n {
			k := s.at(j)
			if valid != nil && !bitAt(valid, k) {
				dst[j] = arrow.ViewHeader{}
				continue
			}
			dst[j] = headerOf(&heads[k], bufs)
			if h := &heads[k]; !h.IsInline() {
				dst[j].SetIndexOffset(0, int32(at))
				at += copy(long[at:], viewBytes(h, bufs))
			}
		}
		dst = dst[s.n:]
	}
}

// writeCodes writes integers of the given width in bytes.
func writeCodes(dst []byte, width int, codes []int32) {
	switch width {
	case 1:
		convert(arrow.GetData[uint8](dst), codes)
	case 2:
		convert(arrow.GetData[uint16](dst), codes)
	case 4:
		copy(arrow.GetData[int32](dst), codes)
	case 8:
		convert(arrow.GetData[int64](dst), codes)
	}
}

func convert[T uint8 | uint16 | int64](dst []T, codes []int32) {
	for i, c := range codes {
		dst[i] = T(c)
	}
}
