package tables

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// checker verifies arrays before anything reads them: buffers long enough,
// offsets ascending and inside the values, indices inside the dictionary.
// Every array passes here, whether it came from a peer or from the caller, so
// that the loops behind need no checks and damaged input is an error.
type checker struct {
	// strict holds for chunks of peers: even what lies under a null must be
	// in range, and the null count must be exact.
	strict bool
	idx    []int32 // scratch
}

// check verifies rows [at, at+rows) of d, where at counts from the start of
// d's buffers.
func (c *checker) check(n *node, d arrow.ArrayData, at, rows int) error {
	if d == nil {
		return n.fault("no data")
	}
	if id := d.DataType().ID(); id != n.logical.ID() {
		return n.fault("type %v where %v was declared", d.DataType(), n.logical)
	}
	if at < d.Offset() || rows < 0 || at+rows < at || at-d.Offset()+rows > d.Len() {
		return n.fault("%d rows from %d, the array ends at %d", rows, at-d.Offset(), d.Len())
	}
	if err := c.checkNulls(n, d, at, rows); err != nil {
		return err
	}
	if rows == 0 {
		return c.checkEmpty(n, d)
	}
	end := at + rows
	switch n.kind {
	case kNull:
		return nil
	case kBits:
		return n.needBytes(d, 1, bytesFor(end))
	case kFixed:
		return n.needBytes(d, 1, int64(end)*int64(n.width))
	case kVar32:
		return checkVar[int32](n, d, at, rows)
	case kVar64:
		return checkVar[int64](n, d, at, rows)
	case kView:
		return c.checkViews(n, d, at, rows)
	case kList32:
		return checkList[int32](c, n, d, at, rows)
	case kList64:
		return checkList[int64](c, n, d, at, rows)
	case kListView32:
		return checkListView[int32](c, n, d, at, rows)
	case kListView64:
		return checkListView[int64](c, n, d, at, rows)
	case kDict:
		return c.checkDict(n, d, at, rows)
	case kDense:
		return c.checkDense(n, d, at, rows)
	case kRunEnd:
		return c.checkRuns(n, d, at, rows)
	}
	if err := n.needKids(d); err != nil {
		return err
	}
	if n.kind == kSparse {
		if err := n.checkCodes(d, at, rows); err != nil {
			return err
		}
	}
	width := 1
	if n.kind == kFixedList {
		width = n.width
	}
	for i, kid := range n.kids {
		kd := d.Children()[i]
		if err := c.check(kid, kd, kd.Offset()+at*width, rows*width); err != nil {
			return err
		}
	}
	return nil
}

// checkEmpty verifies the children of an array without rows; their buffers
// may be missing.
func (c *checker) checkEmpty(n *node, d arrow.ArrayData) error {
	if n.kind == kDict {
		if dict := dictOf(d); dict != nil {
			return c.check(n.kids[0], dict, dict.Offset(), c.covered(dict, 0))
		}
		return nil
	}
	if err := n.needKids(d); err != nil {
		return err
	}
	for i, kid := range n.kids {
		kd := d.Children()[n.kidIndex(i)]
		if err := c.check(kid, kd, kd.Offset(), c.covered(kd, 0)); err != nil {
			return err
		}
	}
	return nil
}

// covered gives how many rows of a child to verify: those in use, or of a
// peer's chunk all there are.
func (c *checker) covered(kid arrow.ArrayData, used int) int {
	if c.strict {
		return kid.Len()
	}
	return used
}

func (c *checker) checkNulls(n *node, d arrow.ArrayData, at, rows int) error {
	if !n.kind.hasValidity() || d.NullN() == 0 {
		return nil
	}
	bitmap := bytesOf(d, 0)
	if bitmap == nil && d.NullN() > 0 {
		return n.fault("%d nulls without a validity bitmap", d.NullN())
	}
	if bitmap == nil {
		return nil
	}
	if int64(len(bitmap)) < bytesFor(at+rows) {
		return n.fault("validity bitmap of %d bytes for %d rows", len(bitmap), at+rows)
	}
	if !n.required && !c.strict {
		return nil
	}
	unset := countUnset(bitmap, at, rows)
	if n.required && unset > 0 {
		return n.fault("%d nulls where none are allowed", unset)
	}
	if c.strict && unset != d.NullN() {
		return n.fault("%d nulls declared, %d found", d.NullN(), unset)
	}
	return nil
}

func (n *node) fault(format string, args ...any) error {
	return fmt.Errorf("column %q: %s", n.path, fmt.Sprintf(format, args...))
}

func (n *node) needBytes(d arrow.ArrayData, buf int, want int64) error {
	if got := int64(len(bytesOf(d, buf))); got < want {
		return n.fault("buffer %d has %d bytes, %d needed", buf, got, want)
	}
	return nil
}

// kidIndex gives the position of kid i among the children of the Arrow array:
// the run ends, child 0 there, are no node of ours.
func (n *node) kidIndex(i int) int {
	if n.kind == kRunEnd {
		return 1
	}
	return i
}

func (n *node) needKids(d arrow.ArrayData) error {
	want := 0
	if len(n.kids) > 0 {
		want = n.kidIndex(len(n.kids)-1) + 1
	}
	kids := d.Children()
	if len(kids) != want {
		return n.fault("%d children, %d needed", len(kids), want)
	}
	for _, k := range kids {
		if k == nil {
			return n.fault("a child is missing")
		}
	}
	return nil
}

// offsets gives the rows+1 offsets from at, verified to ascend within limit.
func offsets[O int32 | int64](n *node, d arrow.ArrayData, at, rows int, limit int64) ([]O, error) {
	if err := n.needBytes(d, 1, int64(at+rows+1)*sizeOf[O]()); err != nil {
		return nil, err
	}
	off := values[O](d, 1)[at : at+rows+1]
	prev := off[0]
	bad := prev // its sign bit collects every fault
	for _, o := range off[1:] {
		bad |= o | (o - prev)
		prev = o
	}
	if bad < 0 {
		return nil, n.fault("offsets descend or are negative")
	}
	if int64(prev) > limit {
		return nil, n.fault("offset %d beyond %d", prev, limit)
	}
	return off, nil
}

func sizeOf[O int32 | int64]() int64 {
	if _, ok := any(O(0)).(int32); ok {
		return 4
	}
	return 8
}

func checkVar[O int32 | int64](n *node, d arrow.ArrayData, at, rows int) error {
	_, err := offsets[O](n, d, at, rows, int64(len(bytesOf(d, 2))))
	return err
}

func checkList[O int32 | int64](c *checker, n *node, d arrow.ArrayData, at, rows int) error {
	if err := n.needKids(d); err != nil {
		return err
	}
	kid := d.Children()[0]
	off, err := offsets[O](n, d, at, rows, int64(kid.Len()))
	if err != nil {
		return err
	}
	first, last := int(off[0]), int(off[rows])
	if c.strict {
		first = 0
	}
	return c.check(n.kids[0], kid, kid.Offset()+first, c.covered(kid, last-first))
}
