package tables

import (
	"errors"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// span is some rows of one array, in the order they go into a chunk.
type span struct {
	data arrow.ArrayData
	base int     // position in data's buffers that rows count from
	rows []int32 // nil: the n rows from base
	n    int
}

// piece is one node of the chunk being planned.
type piece struct {
	place
	spans []span
	codes []int32 // new dictionary indices, union offsets or run ends, by row
}

// plan lays out one chunk: which values go where, before any memory is
// claimed. It is used again for chunk after chunk.
type plan struct {
	tree   *tree
	pieces []piece // by node id
	rows   int     // of the chunk
	body   int64   // bytes
	ints   []int32 // memory of row lists, reused
	marks  map[*node]*dictMarks
}

// errTooLong says that an array of the chunk would outgrow its offsets. Fewer
// rows may fit.
var errTooLong = errors.New("more values than one chunk can hold")

func newPlan(t *tree) *plan {
	return &plan{tree: t, pieces: make([]piece, len(t.nodes)), marks: map[*node]*dictMarks{}}
}

// reset forgets the last chunk.
func (p *plan) reset() {
	for i := range p.pieces {
		p.pieces[i].spans = p.pieces[i].spans[:0]
	}
	p.ints = p.ints[:0]
	p.rows = 0
}

// add selects rows of a batch for the chunk: those listed, counted from base,
// or the n from base if rows is nil. The batch has been verified.
func (p *plan) add(batch arrow.RecordBatch, base int, rows []int32, n int) {
	p.rows += n
	for i, col := range p.tree.cols {
		d := batch.Column(i).Data()
		p.feed(col, span{data: d, base: d.Offset() + base, rows: rows, n: n})
	}
}

func (p *plan) feed(n *node, s span) {
	pc := &p.pieces[n.id]
	pc.spans = append(pc.spans, s)
}

// layout computes the layout of the chunk of everything added.
func (p *plan) layout() error {
	for _, n := range p.tree.cols {
		if err := p.node(n); err != nil {
			return err
		}
	}
	p.body = 0
	for i := range p.pieces {
		p.body = p.pieces[i].settle(p.body)
	}
	return nil
}

// chunk is layout for a chunk, which obeys freeRows.
func (p *plan) chunk() error {
	if err := p.layout(); err != nil {
		return err
	}
	if tooLight(p.rows, p.body) {
		return errTooLong
	}
	for i := range p.pieces {
		if tooLight(p.pieces[i].rows, p.body) {
			return errTooLong
		}
	}
	return nil
}

// ints32 gives a list of n positions that lives until reset.
func (p *plan) ints32(n int) []int32 {
	if cap(p.ints)-len(p.ints) < n {
		p.ints = make([]int32, 0, max(2*cap(p.ints), n, 4096))
	}
	at := len(p.ints)
	p.ints = p.ints[:at+n]
	return p.ints[at : at+n : at+n]
}

func (p *plan) node(n *node) (err error) {
	pc := &p.pieces[n.id]
	var rows int64
	pc.nulls, pc.extent = 0, 0
	for i := range pc.spans {
		rows += int64(pc.spans[i].n)
		if n.kind.hasValidity() {
			pc.nulls += pc.spans[i].nulls()
		}
	}
	if rows > maxRows {
		return errTooLong
	}
	pc.rows = int(rows)
	switch n.kind {
	case kVar32:
		pc.extent = varBytes[int32](pc.spans)
		err = fits(pc.extent, math.MaxInt32)
	case kVar64:
		pc.extent = varBytes[int64](pc.spans)
	case kView:
		pc.extent = viewLong(pc.spans)
		err = fits(pc.extent, math.MaxInt32)
	case kList32:
		err = listRows[int32](p, n)
	case kList64:
		err = listRows[int64](p, n)
	case kListView32:
		err = listViewRows[int32](p, n)
	case kListView64:
		err = listViewRows[int64](p, n)
	case kFixedList:
		err = p.fixedListRows(n)
	case kStruct, kSparse:
		for _, s := range pc.spans {
			for i, kid := range n.kids {
				kd := s.data.Children()[i]
				p.feed(kid, span{data: kd, base: s.base + kd.Offset(), rows: s.rows, n: s.n})
			}
		}
	case kDict:
		err = p.dictRows(n)
	case kDense:
		p.denseRows(n)
	case kRunEnd:
		err = p.runRows(n)
	}
	if err != nil {
		return err
	}
	pc.lens = n.lengths(pc.rows, pc.nulls, pc.extent)
	for _, kid := range n.kids {
		if err := p.node(kid); err != nil {
			return err
		}
	}
	return nil
}

func fits(n, limit int64) error {
	if n > limit {
		return errTooLong
	}
	return nil
}

func (s *span) nulls() int {
	v := validity(s.data)
	if v == nil {
		return 0
	}
	if s.rows == nil {
		return countUnset(v, s.base, s.n)
	}
	set := 0
	for _, r := range s.rows {
		i := s.base + int(r)
		set += int(v[i>>3] >> (i & 7) & 1)
	}
	return s.n - set
}

// offsetsFrom gives the offsets that the rows of s count in. An array without
// rows may have no offsets at all.
func offsetsFrom[O int32 | int64](s *span) []O {
	if s.n == 0 {
		return []O{0}
	}
	return values[O](s.data, 1)[s.base:]
}

func varBytes[O int32 | int64](spans []span) (total int64) {
	for i := range spans {
		total += lengthOf(offsetsFrom[O](&spans[i]), &spans[i])
	}
	return total
}

// lengthOf adds the lengths of the rows of s.
func lengthOf[O int32 | int64](off []O, s *span) (total int64) {
	if s.rows == nil {
		return int64(off[s.n] - off[0])
	}
	for _, r := range s.rows {
		total += int64(off[r+1] - off[r])
	}
	return total
}

// viewLong counts the bytes of values that do not fit their header.
func viewLong(spans []span) (total int64) {
	for i := range spans {
		s := &spans[i]
		heads, valid := values[arrow.ViewHeader](s.data, 1), validity(s.data)
		for j := range s.n {
			k := s.at(j)
			if h := &heads[k]; (valid == nil || bitAt(valid, k)) && !h.IsInline() {
				total += int64(h.Len())
			}
		}
	}
	return total
}

// at gives the position of element j of s in the buffers.
func (s *span) at(j int) int {
	if s.rows == nil {
		return s.base + j
	}
	return s.base + int(s.rows[j])
}
