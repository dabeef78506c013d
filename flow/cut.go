package flow

import "math/bits"

// span is the rows [lo, hi) of unit (a row group, a record batch).
type span struct {
	unit   int
	lo, hi int64
}

// cutRows returns the rows of one rank when units of the given row counts are
// shared among size ranks. A cut lands on a unit's border if that moves it by at
// most a twentieth of a share, since a unit read by two ranks is decoded twice.
func cutRows(rows []int64, rank, size int) []span {
	var total int64
	for _, n := range rows {
		total += n
	}
	from, to := cutAt(rows, total, rank, size), cutAt(rows, total, rank+1, size)
	var spans []span
	var start int64
	for i, n := range rows {
		lo, hi := max(from, start), min(to, start+n)
		if lo < hi {
			spans = append(spans, span{unit: i, lo: lo - start, hi: hi - start})
		}
		start += n
	}
	return spans
}

// cutAt returns the first row of rank, total for rank == size.
func cutAt(rows []int64, total int64, rank, size int) int64 {
	ideal := fraction(total, rank, size)
	if rank == size {
		return total
	}
	slack := total / int64(size) / 20
	var border int64
	for _, n := range rows {
		if abs(border-ideal) <= slack {
			return border
		}
		border += n
	}
	return ideal
}

// cutUnits returns the parts of one rank when the row counts of the units are
// not known: units count alike. lo and hi of a span are numerators over size;
// rowsOf makes rows of them once the unit is read.
func cutUnits(units, rank, size int) []span {
	n := int64(size)
	from, to := int64(units)*int64(rank), int64(units)*int64(rank+1)
	var spans []span
	for pos := from; pos < to; {
		unit := pos / n
		end := min(to, (unit+1)*n)
		spans = append(spans, span{unit: int(unit), lo: pos - unit*n, hi: end - unit*n})
		pos = end
	}
	return spans
}

// rowsOf returns the rows of a unit of n rows that the span of cutUnits means.
func (s span) rowsOf(n int64, size int) (lo, hi int64) {
	return fraction(n, int(s.lo), size), fraction(n, int(s.hi), size)
}

// fraction returns n*part/of, rounded down, for 0 <= part <= of.
func fraction(n int64, part, of int) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(of))
	return int64(q)
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
