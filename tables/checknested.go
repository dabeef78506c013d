package tables

import (
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func checkListView[O int32 | int64](c *checker, n *node, d arrow.ArrayData, at, rows int) error {
	if err := n.needKids(d); err != nil {
		return err
	}
	for i := 1; i <= 2; i++ {
		if err := n.needBytes(d, i, int64(at+rows)*sizeOf[O]()); err != nil {
			return err
		}
	}
	kid := d.Children()[0]
	limit := int64(kid.Len())
	off, size := values[O](d, 1)[at:at+rows], values[O](d, 2)[at:at+rows]
	skip := c.skips(d)
	for i, o := range off {
		if skip != nil && !bitAt(skip, at+i) {
			continue
		}
		if o < 0 || size[i] < 0 || int64(o) > limit || int64(size[i]) > limit-int64(o) {
			return n.fault("row %d: list of %d from %d, the values end at %d", i, size[i], o, limit)
		}
	}
	return c.check(n.kids[0], kid, kid.Offset(), kid.Len())
}

// skips gives the validity bitmap if nulls need no check.
func (c *checker) skips(d arrow.ArrayData) []byte {
	if c.strict {
		return nil
	}
	return validity(d)
}

func (c *checker) checkViews(n *node, d arrow.ArrayData, at, rows int) error {
	if err := n.needBytes(d, 1, 16*int64(at+rows)); err != nil {
		return err
	}
	bufs := viewBufs(d)
	skip := c.skips(d)
	heads := values[arrow.ViewHeader](d, 1)[at : at+rows]
	for i := range heads {
		h := &heads[i]
		if skip != nil && !bitAt(skip, at+i) {
			continue
		}
		if h.Len() < 0 {
			return n.fault("row %d: negative length", i)
		}
		if !h.IsInline() {
			b, o := int(h.BufferIndex()), int64(h.BufferOffset())
			if b < 0 || b >= len(bufs) || o < 0 || o+int64(h.Len()) > int64(len(bufBytes(bufs[b]))) {
				return n.fault("row %d: %d bytes from %d of buffer %d are outside", i, h.Len(), o, b)
			}
		}
		if c.strict && *h != headerOf(h, bufs) {
			return n.fault("row %d: the header differs from the value", i)
		}
	}
	return nil
}

// headerOf gives h as it must be: with the value's first bytes, the rest zero.
func headerOf(h *arrow.ViewHeader, bufs []*memory.Buffer) (w arrow.ViewHeader) {
	w.SetBytes(viewBytes(h, bufs))
	if !h.IsInline() {
		w.SetIndexOffset(h.BufferIndex(), h.BufferOffset())
	}
	return w
}

// dictOf gives the dictionary of d. arrow-go wraps a missing one in a non-nil
// interface.
func dictOf(d arrow.ArrayData) arrow.ArrayData {
	dict := d.Dictionary()
	if p, ok := dict.(*array.Data); ok && p == nil {
		return nil
	}
	return dict
}

func (c *checker) checkDict(n *node, d arrow.ArrayData, at, rows int) error {
	if err := n.needBytes(d, 1, int64(at+rows)*int64(n.width)); err != nil {
		return err
	}
	dict := dictOf(d)
	if dict == nil {
		return n.fault("no dictionary")
	}
	if dict.Len() > maxRows {
		return n.fault("dictionary of %d values, at most %d are supported", dict.Len(), maxRows)
	}
	skip := c.skips(d)
	limit := dict.Len()
	if c.strict && limit == 0 && d.NullN() == rows {
		limit = 1 // only nulls, written as index 0
	}
	c.idx = sized(c.idx, rows)
	n.indices(d, at, nil, limit, c.idx)
	for i, x := range c.idx {
		if x < 0 && (skip == nil || bitAt(skip, at+i)) {
			return n.fault("row %d: index outside the dictionary of %d values", i, dict.Len())
		}
	}
	return c.check(n.kids[0], dict, dict.Offset(), dict.Len())
}

// indices gives in dst the dictionary indices of the rows listed, counted from
// at, or of the len(dst) rows from at; -1 stands for one not below limit.
func (n *node) indices(d arrow.ArrayData, at int, rows []int32, limit int, dst []int32) {
	switch n.storage.(*arrow.DictionaryType).IndexType.ID() {
	case arrow.INT8:
		widen(dst, values[int8](d, 1)[at:], rows, limit)
	case arrow.UINT8:
		widen(dst, values[uint8](d, 1)[at:], rows, limit)
	case arrow.INT16:
		widen(dst, values[int16](d, 1)[at:], rows, limit)
	case arrow.UINT16:
		widen(dst, values[uint16](d, 1)[at:], rows, limit)
	case arrow.INT32:
		widen(dst, values[int32](d, 1)[at:], rows, limit)
	case arrow.UINT32:
		widen(dst, values[uint32](d, 1)[at:], rows, limit)
	case arrow.INT64:
		widen(dst, values[int64](d, 1)[at:], rows, limit)
	case arrow.UINT64:
		widen(dst, values[uint64](d, 1)[at:], rows, limit)
	}
}

func widen[T arrow.IntType | arrow.UintType](dst []int32, src []T, rows []int32, limit int) {
	if rows == nil {
		for i, x := range src[:len(dst)] {
			dst[i] = narrow(x, limit)
		}
		return
	}
	for i, r := range rows {
		dst[i] = narrow(src[r], limit)
	}
}

func narrow[T arrow.IntType | arrow.UintType](x T, limit int) int32 {
	if uint64(x) >= uint64(limit) {
		return -1
	}
	return int32(x)
}

// sized gives a slice of n elements, b's memory if it is large enough.
func sized[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n, n+n/4)
	}
	return b[:n]
}

// codeTable maps a union's type code to its child, -1 for no child.
func (n *node) codeTable() (t [128]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, code := range n.storage.(arrow.UnionType).TypeCodes() {
		t[code] = int8(i)
	}
	return t
}

func (n *node) checkCodes(d arrow.ArrayData, at, rows int) error {
	if err := n.needBytes(d, 1, int64(at+rows)); err != nil {
		return err
	}
	table := n.codeTable()
	for i, code := range values[int8](d, 1)[at : at+rows] {
		if code < 0 || table[code] < 0 {
			return n.fault("row %d: type code %d is not in the union", i, code)
		}
	}
	return nil
}

func (c *checker) checkDense(n *node, d arrow.ArrayData, at, rows int) error {
	if err := n.needKids(d); err != nil {
		return err
	}
	if err := n.checkCodes(d, at, rows); err != nil {
		return err
	}
	if err := n.needBytes(d, 2, 4*int64(at+rows)); err != nil {
		return err
	}
	table := n.codeTable()
	codes, kids := values[int8](d, 1)[at:at+rows], d.Children()
	last := make([]int32, len(kids)) // by child, the offset used last, plus one
	for i, off := range values[int32](d, 2)[at : at+rows] {
		kid := table[codes[i]]
		if off < 0 || int(off) >= kids[kid].Len() {
			return n.fault("row %d: offset %d beyond the child of %d", i, off, kids[kid].Len())
		}
		if c.strict && off < last[kid] {
			return n.fault("row %d: offset %d again", i, off)
		}
		last[kid] = off + 1
	}
	for i, kid := range n.kids {
		if err := c.check(kid, kids[i], kids[i].Offset(), kids[i].Len()); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkRuns(n *node, d arrow.ArrayData, at, rows int) error {
	if err := n.needKids(d); err != nil {
		return err
	}
	ends, vals := d.Children()[0], d.Children()[1]
	if want := n.storage.(*arrow.RunEndEncodedType).RunEnds(); ends.DataType().ID() != want.ID() {
		return n.fault("run ends of type %v where %v was declared", ends.DataType(), want)
	}
	if ends.NullN() > 0 {
		return n.fault("null run ends")
	}
	if err := n.needBytes(ends, 1, int64(ends.Offset()+ends.Len())*int64(n.width)); err != nil {
		return err
	}
	if vals.Len() < ends.Len() {
		return n.fault("%d runs with %d values", ends.Len(), vals.Len())
	}
	last := int64(0)
	for i := range ends.Len() {
		end := n.runEnd(ends, i)
		if end <= last {
			return n.fault("run %d ends at %d, the one before at %d", i, end, last)
		}
		last = end
	}
	if last < int64(at+rows) {
		return n.fault("the runs end at %d, %d rows are needed", last, at+rows)
	}
	return c.check(n.kids[0], vals, vals.Offset(), ends.Len())
}

// runEnd gives the end of run i.
func (n *node) runEnd(ends arrow.ArrayData, i int) int64 {
	i += ends.Offset()
	switch n.width {
	case 2:
		return int64(values[int16](ends, 1)[i])
	case 4:
		return int64(values[int32](ends, 1)[i])
	default:
		return values[int64](ends, 1)[i]
	}
}

// findRun gives the run that holds the row at, a position from the start of
// the array, offset included.
func (n *node) findRun(ends arrow.ArrayData, at int) int {
	return sort.Search(ends.Len(), func(i int) bool { return n.runEnd(ends, i) > int64(at) })
}
