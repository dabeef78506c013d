package stats

import (
	"math"
	"slices"
)

// Summary describes samples in their unit. Percentiles are samples that
// occurred: the smallest that at least so many per cent do not exceed.
type Summary struct {
	Count int   `json:"count"`
	Min   int64 `json:"min"`
	P50   int64 `json:"p50"`
	P90   int64 `json:"p90"`
	P99   int64 `json:"p99"`
	Max   int64 `json:"max"`
	Mean  int64 `json:"mean"`  // rounded
	Stdev int64 `json:"stdev"` // of the sample, rounded; 0 for fewer than two
}

// Of returns the Summary of samples, zero without any.
func Of(samples []int64) Summary {
	n := len(samples)
	if n == 0 {
		return Summary{}
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	rank := func(percent int) int64 { return s[(n*percent+99)/100-1] }
	var mean, squares float64
	for i, v := range s { // Welford: no large sums of squares
		d := float64(v) - mean
		mean += d / float64(i+1)
		squares += d * (float64(v) - mean)
	}
	stdev := 0.0
	if n > 1 {
		stdev = math.Sqrt(squares / float64(n-1))
	}
	return Summary{n, s[0], rank(50), rank(90), rank(99), s[n-1], int64(math.Round(mean)), int64(math.Round(stdev))}
}

// Rate is bytes per second, 0 for no time.
func Rate(bytes, ns int64) int64 {
	if ns <= 0 {
		return 0
	}
	return int64(math.Round(float64(bytes) / float64(ns) * 1e9))
}
