package stats

import (
	"testing"

	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestOf(t *testing.T) {
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(100 - i)
	}
	big := int64(1) << 62
	for _, c := range []struct {
		samples []int64
		want    Summary
	}{
		{nil, Summary{}},
		{[]int64{7}, Summary{1, 7, 7, 7, 7, 7, 7, 0}},
		{[]int64{3, 1}, Summary{2, 1, 1, 3, 3, 3, 2, 1}},
		{[]int64{5, 1, 3, 2, 4}, Summary{5, 1, 3, 5, 5, 5, 3, 2}},
		{hundred, Summary{100, 1, 50, 90, 99, 100, 51, 29}},
		{[]int64{big, big, big}, Summary{3, big, big, big, big, big, big, 0}},
	} {
		if got := Of(c.samples); got != c.want {
			t.Errorf("%d samples: %+v, want %+v", len(c.samples), got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the samples were sorted in place")
	}
}

func TestRate(t *testing.T) {
	for _, c := range [][3]int64{{1000, 1e9, 1000}, {1, 3e9, 0}, {5, 0, 0}, {171798691840, 256e6, 671088640000}} {
		if got := Rate(c[0], c[1]); got != c[2] {
			t.Errorf("%d bytes in %d ns: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
