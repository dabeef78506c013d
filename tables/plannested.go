package tables

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// listRows selects the child rows of lists.
func listRows[O int32 | int64](p *plan, n *node) error {
	pc := &p.pieces[n.id]
	for i := range pc.spans {
		s := &pc.spans[i]
		off, kd := offsetsFrom[O](s), s.data.Children()[0]
		total := lengthOf(off, s)
		if pc.extent += total; pc.extent > maxRows {
			return errTooLong
		}
		kid := span{data: kd, base: kd.Offset() + int(off[0]), n: int(total)}
		if s.rows != nil {
			kid.rows = p.ints32(int(total))[:0]
			for _, r := range s.rows {
				from, to := off[r]-off[0], off[r+1]-off[0]
				if to > math.MaxInt32 {
					return errTooLong
				}
				kid.rows = appendRange(kid.rows, int32(from), int32(to-from))
			}
		}
		p.feed(n.kids[0], kid)
	}
	return nil
}

func appendRange(dst []int32, from, n int32) []int32 {
	for i := range n {
		dst = append(dst, from+i)
	}
	return dst
}

// listViewRows selects the child rows of list views; they may overlap.
func listViewRows[O int32 | int64](p *plan, n *node) error {
	pc := &p.pieces[n.id]
	for i := range pc.spans {
		s := &pc.spans[i]
		off, size := values[O](s.data, 1), values[O](s.data, 2)
		valid, kd := validity(s.data), s.data.Children()[0]
		var total int64
		for j := range s.n {
			if k := s.at(j); valid == nil || bitAt(valid, k) {
				total += int64(size[k])
				if int64(off[k])+int64(size[k]) > math.MaxInt32 {
					return errTooLong
				}
			}
		}
		if pc.extent += total; pc.extent > maxRows {
			return errTooLong
		}
		rows := p.ints32(int(total))[:0]
		for j := range s.n {
			if k := s.at(j); valid == nil || bitAt(valid, k) {
				rows = appendRange(rows, int32(off[k]), int32(size[k]))
			}
		}
		p.feed(n.kids[0], span{data: kd, base: kd.Offset(), rows: rows, n: len(rows)})
	}
	return nil
}

func (p *plan) fixedListRows(n *node) error {
	pc, w := &p.pieces[n.id], n.width
	if err := fits(int64(pc.rows)*int64(w), maxRows); err != nil {
		return err
	}
	for _, s := range pc.spans {
		kd := s.data.Children()[0]
		kid := span{data: kd, base: kd.Offset() + s.base*w, n: s.n * w}
		if s.rows != nil {
			kid.rows = p.ints32(kid.n)[:0]
			for _, r := range s.rows {
				if (int64(r)+1)*int64(w) > math.MaxInt32 {
					return errTooLong
				}
				kid.rows = appendRange(kid.rows, r*int32(w), int32(w))
			}
		}
		p.feed(n.kids[0], kid)
	}
	return nil
}

// denseRows selects, child by child, the values the rows refer to, and gives
// each row its new offset.
func (p *plan) denseRows(n *node) {
	pc, table := &p.pieces[n.id], n.codeTable()
	pc.codes = p.ints32(pc.rows)[:0]
	next := make([]int32, len(n.kids))
	for i := range pc.spans {
		s := &pc.spans[i]
		codes, off := values[int8](s.data, 1), values[int32](s.data, 2)
		count := make([]int, len(n.kids))
		for j := range s.n {
			count[table[codes[s.at(j)]]]++
		}
		picks := make([][]int32, len(n.kids))
		for c := range picks {
			picks[c] = p.ints32(count[c])[:0]
		}
		for j := range s.n {
			k := s.at(j)
			c := table[codes[k]]
			picks[c] = append(picks[c], off[k])
			pc.codes = append(pc.codes, next[c])
			next[c]++
		}
		for c, kid := range n.kids {
			kd := s.data.Children()[c]
			p.feed(kid, span{data: kd, base: kd.Offset(), rows: picks[c], n: len(picks[c])})
		}
	}
}

// runRows encodes the rows as runs again. Neighbours of one run share one.
func (p *plan) runRows(n *node) error {
	pc := &p.pieces[n.id]
	if n.width == 2 && pc.rows > math.MaxInt16 {
		return errTooLong
	}
	pc.codes = p.ints32(pc.rows)[:0]
	total := int32(0)
	for i := range pc.spans {
		s := &pc.spans[i]
		ends, vals := s.data.Children()[0], s.data.Children()[1]
		rows := p.ints32(s.n)[:0]
		run := -1
		for j := range s.n {
			total++
			k := s.at(j)
			if run >= 0 && n.inRun(ends, run, k) {
				pc.codes[len(pc.codes)-1] = total
				continue
			}
			run = n.findRun(ends, k)
			rows = append(rows, int32(run))
			pc.codes = append(pc.codes, total)
		}
		p.feed(n.kids[0], span{data: vals, base: vals.Offset(), rows: rows, n: len(rows)})
	}
	pc.extent = int64(len(pc.codes))
	return nil
}

// inRun reports whether the row at belongs to the run.
func (n *node) inRun(ends arrow.ArrayData, run, at int) bool {
	return n.runEnd(ends, run) > int64(at) && (run == 0 || n.runEnd(ends, run-1) <= int64(at))
}
