package tables

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// dictMarks remembers which values of a dictionary a chunk uses.
type dictMarks struct {
	stamp uint32   // of the current chunk and dictionary
	seen  []uint32 // stamp when the value was last used
	code  []int32  // its new index then
}

// next starts over for a dictionary of n values.
func (m *dictMarks) next(n int) {
	if m.stamp == math.MaxUint32 || cap(m.seen) < n {
		m.stamp, m.seen, m.code = 0, make([]uint32, n), make([]int32, n)
	}
	m.stamp++
	m.seen, m.code = m.seen[:n], m.code[:n]
}

// dictRows selects the dictionary values that the rows use, in the order of
// first use, and gives each row its new index. An ordered dictionary goes
// whole, since its order means something. Spans with different dictionaries
// (Concat) get one of the distinct values.
func (p *plan) dictRows(n *node) error {
	pc, dt := &p.pieces[n.id], n.storage.(*arrow.DictionaryType)
	pc.codes = p.ints32(pc.rows)
	if dt.Ordered {
		return p.wholeDict(n)
	}
	m := p.marks[n]
	if m == nil {
		m = &dictMarks{}
		p.marks[n] = m
	}
	var known map[string]int32 // by value, only with several dictionaries
	if !oneDict(pc.spans) {
		known = map[string]int32{}
	}
	codes := pc.codes
	var last arrow.ArrayData
	for i := range pc.spans {
		s := &pc.spans[i]
		dict := dictOf(s.data)
		if dict == nil {
			if s.n > 0 {
				return n.fault("no dictionary")
			}
			continue
		}
		if dict != last {
			m.next(dict.Len())
			last = dict
		}
		old := n.pick(s, dict.Len(), p.ints32(s.n))
		used := p.ints32(min(s.n, dict.Len()))[:0]
		for j, x := range old {
			if x < 0 {
				codes[j] = 0 // null
				continue
			}
			if m.seen[x] != m.stamp {
				m.seen[x] = m.stamp
				code, fresh := n.newCode(dict, x, int32(pc.extent), known)
				if m.code[x] = code; fresh {
					used = append(used, x)
					pc.extent++
				}
			}
			codes[j] = m.code[x]
		}
		codes = codes[s.n:]
		p.feed(n.kids[0], span{data: dict, base: dict.Offset(), rows: used, n: len(used)})
	}
	return n.codesFit(pc.extent)
}

func oneDict(spans []span) bool {
	for i := range spans {
		if dictOf(spans[i].data) != dictOf(spans[0].data) {
			return false
		}
	}
	return true
}

// newCode gives the new index of value x, next unless an equal value has one.
func (n *node) newCode(dict arrow.ArrayData, x, next int32, known map[string]int32) (code int32, fresh bool) {
	if known == nil {
		return next, true
	}
	key, ok := n.kids[0].rawKey(dict, dict.Offset()+int(x))
	if !ok {
		return next, true
	}
	code, ok = known[key]
	if !ok {
		code = next
		known[key] = next
	}
	return code, !ok
}

// rawKey gives the bytes of a flat value, for telling values apart. Values
// with children are not told apart and stay duplicated.
func (n *node) rawKey(d arrow.ArrayData, at int) (string, bool) {
	if n.kind.hasValidity() {
		if v := validity(d); v != nil && !bitAt(v, at) {
			return "", true
		}
	}
	switch n.kind {
	case kBits:
		if bitAt(bytesOf(d, 1), at) {
			return "v1", true
		}
		return "v0", true
	case kFixed:
		return "v" + string(bytesOf(d, 1)[at*n.width:(at+1)*n.width]), true
	case kVar32:
		off := values[int32](d, 1)[at:]
		return "v" + string(bytesOf(d, 2)[off[0]:off[1]]), true
	case kVar64:
		off := values[int64](d, 1)[at:]
		return "v" + string(bytesOf(d, 2)[off[0]:off[1]]), true
	case kView:
		return "v" + string(viewBytes(&values[arrow.ViewHeader](d, 1)[at], viewBufs(d))), true
	}
	return "", false
}

// pick gives the dictionary index of each row of s, -1 for null.
func (n *node) pick(s *span, limit int, dst []int32) []int32 {
	if s.n == 0 {
		return dst
	}
	valid := validity(s.data)
	n.indices(s.data, s.base, s.rows, limit, dst)
	if valid != nil {
		for j := range dst {
			if !bitAt(valid, s.at(j)) {
				dst[j] = -1
			}
		}
	}
	return dst
}

// wholeDict keeps the dictionary as it is.
func (p *plan) wholeDict(n *node) error {
	pc := &p.pieces[n.id]
	codes := pc.codes
	var first arrow.ArrayData
	for i := range pc.spans {
		s := &pc.spans[i]
		dict := dictOf(s.data)
		if dict == nil {
			if s.n > 0 {
				return n.fault("no dictionary")
			}
			continue
		}
		if first == nil {
			first = dict
			pc.extent = int64(dict.Len())
			p.feed(n.kids[0], span{data: dict, base: dict.Offset(), n: dict.Len()})
		} else if dict != first && !equalData(dict, first) {
			return n.fault("ordered dictionaries differ")
		}
		for j, x := range n.pick(s, dict.Len(), p.ints32(s.n)) {
			codes[j] = max(x, 0)
		}
		codes = codes[s.n:]
	}
	return n.codesFit(pc.extent)
}

func equalData(a, b arrow.ArrayData) bool {
	x, y := array.MakeFromData(a), array.MakeFromData(b)
	defer x.Release()
	defer y.Release()
	return array.Equal(x, y)
}

// codesFit verifies that the type of the indices holds n different ones.
func (n *node) codesFit(size int64) error {
	bits := 8 * n.width
	if !arrow.IsUnsignedInteger(n.storage.(*arrow.DictionaryType).IndexType.ID()) {
		bits--
	}
	if bits < 31 && size > 1<<bits {
		return fmt.Errorf("%w: %w", n.fault("dictionary of %d values, indices of %d bits hold %d", size, bits, 1<<bits), errTooLong)
	}
	return fits(size, maxRows)
}
