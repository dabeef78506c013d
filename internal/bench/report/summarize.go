package report

import "github.com/sluice-engine/sluice/internal/bench/stats"

// Summarize fills Summary but for Peak from Samples.
func (d *Document) Summarize() {
	slowest := map[int]Sample{}
	var ranks, first, elapsed []int64
	perRank := make([]int64, d.Ranks)
	s := &d.Summary
	var last int
	for _, x := range d.Samples {
		if x.Warmup {
			continue
		}
		if x.Elapsed >= slowest[x.Run].Elapsed {
			slowest[x.Run] = x
		}
		ranks = append(ranks, x.Elapsed)
		if x.FirstPartition > 0 {
			first = append(first, x.FirstPartition)
		}
		last = max(last, x.Run)
	}
	for _, x := range d.Samples {
		if x.Run == last && !x.Warmup {
			s.Bytes += x.BytesSent + x.BytesSelf
			s.WireBytes += x.BytesSent
			perRank[x.Rank] = x.BytesReceived + x.BytesSelf
		}
	}
	worst := Sample{}
	for _, x := range slowest {
		elapsed = append(elapsed, x.Elapsed)
		if x.Elapsed > worst.Elapsed {
			worst = x
		}
	}
	s.Elapsed, s.RankElapsed, s.FirstPartition = stats.Of(elapsed), stats.Of(ranks), stats.Of(first)
	s.Slowest = worst.Rank
	s.Alg = stats.Rate(s.Bytes, s.Elapsed.P50)
	s.Wire = stats.Rate(s.WireBytes, s.Elapsed.P50)
	if d.Ranks > 0 {
		s.Bus = int64(float64(s.Alg) * float64(d.Ranks-1) / float64(d.Ranks))
	}
	s.Skew = skew(perRank)
}

// skew is the largest value over the mean, 1 when there is nothing.
func skew(values []int64) float64 {
	var most, sum int64
	for _, v := range values {
		most, sum = max(most, v), sum+v
	}
	if sum == 0 {
		return 1
	}
	return float64(most) * float64(len(values)) / float64(sum)
}
