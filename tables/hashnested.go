package tables

import (
	"math/bits"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// temporal hashes points in time and spans as a signed 128 bit number of
// nanoseconds, which no unit can overflow, and calendar intervals as months,
// days and nanoseconds.
func (h *hashCore) temporal(dt arrow.DataType, d arrow.ArrayData, at int, dst []uint64) {
	switch dt := dt.(type) {
	case *arrow.TimestampType:
		hashNanos(h, values[int64](d, 1)[at:], dt.Unit.Multiplier(), dst)
	case *arrow.DurationType:
		hashNanos(h, values[int64](d, 1)[at:], dt.Unit.Multiplier(), dst)
	case *arrow.Time32Type:
		hashNanos(h, values[int32](d, 1)[at:], dt.Unit.Multiplier(), dst)
	case *arrow.Time64Type:
		hashNanos(h, values[int64](d, 1)[at:], dt.Unit.Multiplier(), dst)
	case *arrow.Date32Type:
		hashNanos(h, values[int32](d, 1)[at:], 24*time.Hour, dst)
	case *arrow.Date64Type:
		hashNanos(h, values[int64](d, 1)[at:], time.Millisecond, dst)
	case *arrow.MonthIntervalType:
		for i, v := range values[int32](d, 1)[at : at+len(dst)] {
			dst[i] = h.hash16(uint64(uint32(v)), 0)
		}
	case *arrow.DayTimeIntervalType:
		for i, v := range values[arrow.DayTimeInterval](d, 1)[at : at+len(dst)] {
			dst[i] = h.hash16(uint64(uint32(v.Days))<<32, uint64(int64(v.Milliseconds)*int64(time.Millisecond)))
		}
	case *arrow.MonthDayNanoIntervalType:
		for i, v := range values[arrow.MonthDayNanoInterval](d, 1)[at : at+len(dst)] {
			dst[i] = h.hash16(uint64(uint32(v.Months))|uint64(uint32(v.Days))<<32, uint64(v.Nanoseconds))
		}
	}
}

func hashNanos[T int32 | int64](h *hashCore, src []T, unit time.Duration, dst []uint64) {
	m, u := h.mixer, uint64(unit)
	src = src[:len(dst)]
	for i, v := range src {
		hi, lo := bits.Mul64(uint64(v), u)
		if v < 0 {
			hi -= u // the unsigned product read v as 2^64 too large
		}
		dst[i] = m.hash16(lo, hi)
	}
}

// nested hashes arrays with children.
func (h *hashCore) nested(n *node, d arrow.ArrayData, at int, dst []uint64) {
	switch n.kind {
	case kDict:
		h.dict(n, d, at, dst)
	case kRunEnd:
		h.runs(n, d, at, dst)
	case kList32:
		hashLists(h, n, d, values[int32](d, 1)[at:], dst)
	case kList64:
		hashLists(h, n, d, values[int64](d, 1)[at:], dst)
	case kListView32:
		hashListViews(h, n, d, values[int32](d, 1)[at:], values[int32](d, 2)[at:], at, dst)
	case kListView64:
		hashListViews(h, n, d, values[int64](d, 1)[at:], values[int64](d, 2)[at:], at, dst)
	case kFixedList:
		kid := h.kid(n.kids[0], d.Children()[0], at*n.width, len(dst)*n.width)
		for i := range dst {
			dst[i] = h.list(kid[i*n.width : (i+1)*n.width])
		}
	case kStruct:
		fill(dst, h.hash8(uint64(len(n.kids))))
		for i, k := range n.kids {
			h.chain(dst, h.kid(k, d.Children()[i], at, len(dst)))
		}
	case kSparse, kDense:
		h.union(n, d, at, dst)
	}
}

// kid gives the hashes of rows [at, at+rows) of a child.
func (h *hashCore) kid(n *node, d arrow.ArrayData, at, rows int) []uint64 {
	out := make([]uint64, rows)
	h.hash(n, d, d.Offset()+at, out)
	return out
}

// list chains the hashes of a list's values, after that of their number.
func (h *hashCore) list(vals []uint64) uint64 {
	x := h.hash8(uint64(len(vals)))
	for _, v := range vals {
		x = h.hash16(x, v)
	}
	return x
}

func hashLists[O int32 | int64](h *hashCore, n *node, d arrow.ArrayData, off []O, dst []uint64) {
	first := off[0]
	kid := h.kid(n.kids[0], d.Children()[0], int(first), int(off[len(dst)]-first))
	for i := range dst {
		dst[i] = h.list(kid[off[i]-first : off[i+1]-first])
	}
}

func hashListViews[O int32 | int64](h *hashCore, n *node, d arrow.ArrayData, off, size []O, at int, dst []uint64) {
	vals, valid := d.Children()[0], validity(d)
	kid := h.kid(n.kids[0], vals, 0, vals.Len())
	for i := range dst {
		if valid == nil || bitAt(valid, at+i) {
			dst[i] = h.list(kid[off[i] : off[i]+size[i]])
		}
	}
}

// dict hashes the dictionary once, not each row.
func (h *hashCore) dict(n *node, d arrow.ArrayData, at int, dst []uint64) {
	vals := dictOf(d)
	kid := h.kid(n.kids[0], vals, 0, vals.Len())
	h.idx = sized(h.idx, len(dst))
	n.indices(d, at, nil, vals.Len(), h.idx)
	for i, x := range h.idx {
		if x < 0 { // under a null
			dst[i] = h.null
			continue
		}
		dst[i] = kid[x]
	}
}

func (h *hashCore) runs(n *node, d arrow.ArrayData, at int, dst []uint64) {
	ends, vals := d.Children()[0], d.Children()[1]
	kid := h.kid(n.kids[0], vals, 0, ends.Len())
	run := n.findRun(ends, at)
	for i := range dst {
		for n.runEnd(ends, run) <= int64(at+i) {
			run++
		}
		dst[i] = kid[run]
	}
}

// union chains the type code and the value.
func (h *hashCore) union(n *node, d arrow.ArrayData, at int, dst []uint64) {
	codes, table := values[int8](d, 1)[at:], n.codeTable()
	kids := make([][]uint64, len(n.kids))
	for i, k := range n.kids {
		if kd := d.Children()[i]; n.kind == kDense {
			kids[i] = h.kid(k, kd, 0, kd.Len())
		} else {
			kids[i] = h.kid(k, kd, at, len(dst))
		}
	}
	for i := range dst {
		pos := i
		if n.kind == kDense {
			pos = int(values[int32](d, 2)[at+i])
		}
		dst[i] = h.hash16(uint64(codes[i]), kids[table[codes[i]]][pos])
	}
}

// viewBufs gives the buffers that hold the long values of a view array.
func viewBufs(d arrow.ArrayData) []*memory.Buffer {
	if bufs := d.Buffers(); len(bufs) > 2 {
		return bufs[2:]
	}
	return nil
}

// viewBytes gives the value of a verified view.
func viewBytes(h *arrow.ViewHeader, bufs []*memory.Buffer) []byte {
	if h.IsInline() {
		return h.InlineBytes()
	}
	o := int(h.BufferOffset())
	return bufs[h.BufferIndex()].Bytes()[o : o+h.Len()]
}
