package flow

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCutRowsOnBorders(t *testing.T) {
	equal := slices.Repeat([]int64{1000}, 11) // as the flights file
	for _, c := range []struct {
		rows []int64
		size int
		want [][]span
	}{
		{equal, 11, nil},
		{[]int64{100, 100, 100, 100}, 2, [][]span{{{0, 0, 100}, {1, 0, 100}}, {{2, 0, 100}, {3, 0, 100}}}},
		{[]int64{101, 99, 100}, 3, [][]span{{{0, 0, 101}}, {{1, 0, 99}}, {{2, 0, 100}}}},
		{[]int64{10}, 2, [][]span{{{0, 0, 5}}, {{0, 5, 10}}}},
		{[]int64{0, 2, 0}, 3, [][]span{nil, {{1, 0, 1}}, {{1, 1, 2}}}},
		{nil, 2, [][]span{nil, nil}},
		{[]int64{1000, 1}, 1, [][]span{{{0, 0, 1000}, {1, 0, 1}}}},
	} {
		for rank := range c.size {
			got := cutRows(c.rows, rank, c.size)
			if c.want == nil {
				c.want = make([][]span, c.size)
				for i := range c.want {
					c.want[i] = []span{{i, 0, 1000}}
				}
			}
			if !slices.Equal(got, c.want[rank]) {
				t.Errorf("%v over %d, rank %d: %v, want %v", c.rows, c.size, rank, got, c.want[rank])
			}
		}
	}
}

// The spans of all ranks follow each other and cover every row, in both ways of
// cutting, and no rank has more than its share and a little.
func TestCutsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Int64Range(0, 1000), 0, 20).Draw(t, "rows")
		size := rapid.IntRange(1, 10).Draw(t, "size")
		var total int64
		for _, n := range rows {
			total += n
		}
		covers := func(how string, cut func(rank int) []span) {
			unit, at := 0, int64(0)
			for rank := range size {
				var mine int64
				for _, s := range cut(rank) {
					for unit < len(rows) && at == rows[unit] && unit != s.unit {
						unit, at = unit+1, 0
					}
					if s.unit != unit || s.lo != at {
						t.Fatalf("%s: rank %d has %v after row %d of unit %d", how, rank, s, at, unit)
					}
					mine += s.hi - s.lo
					at = s.hi
				}
				if share := total / int64(size); how == "rows" && mine > share+share/10+1 {
					t.Fatalf("rank %d has %d of %d rows", rank, mine, total)
				}
			}
			for unit < len(rows) && at == rows[unit] {
				unit, at = unit+1, 0
			}
			if unit != len(rows) {
				t.Fatalf("%s: ends at row %d of unit %d", how, at, unit)
			}
		}
		covers("rows", func(rank int) []span { return cutRows(rows, rank, size) })
		covers("units", func(rank int) []span {
			var spans []span
			for _, s := range cutUnits(len(rows), rank, size) {
				lo, hi := s.rowsOf(rows[s.unit], size)
				spans = append(spans, span{s.unit, lo, hi})
			}
			return spans
		})
	})
}
