package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/shuffle"
)

// Plan says how often a workload runs and whether its data is checked.
type Plan struct {
	Runs     int  `json:"runs"`
	Warmups  int  `json:"warmups"`
	Validate bool `json:"validate"`
}

// RankRun is what one rank did in one run, times in nanoseconds.
type RankRun struct {
	Rank, Run      int
	Warmup         bool
	Elapsed        int64
	FirstPartition int64
	Wait           int64

	BytesSent, BytesReceived, BytesSelf    int64
	ChunksSent, ChunksReceived, ChunksSelf int64
	SentTo                                 []int64 // bytes to each rank, itself included

	RowsRead, RowsOwned int64
	In, Out             Digest
	Misplaced           int64 // found on arrival to be out of place

	PeakHost, PayloadCopies, Coalesced, Dropped int64

	sink uint64 // keeps reads without validation alive
}

// A workload is one rank's part of one run. It fills what it knows of res.
type workload func(ctx context.Context, r *Rank, clock *clock, res *RankRun) error

// clock measures one rank's run from the barrier on.
type clock struct {
	start time.Time
	first int64
	wait  int64
}

func (c *clock) sinceStart() int64 { return time.Since(c.start).Nanoseconds() }

// firstPartition notes the time of its first call.
func (c *clock) firstPartition() {
	if c.first == 0 {
		c.first = c.sinceStart()
	}
}

// waiting adds the time until the call of what it returns.
func (c *clock) waiting() (stop func()) {
	from := time.Now()
	return func() { c.wait += time.Since(from).Nanoseconds() }
}

// measure runs work on one rank and brings all results to rank 0, by run and
// rank; the others get nil.
func measure(ctx context.Context, r *Rank, plan Plan, work workload) ([][]RankRun, error) {
	var all [][]RankRun
	for run := range plan.Warmups + plan.Runs {
		res := RankRun{Rank: r.ID, Run: run, Warmup: run < plan.Warmups}
		if err := r.Comm.Barrier(ctx); err != nil {
			return nil, fmt.Errorf("barrier before run %d: %w", run, err)
		}
		c := clock{start: time.Now()}
		if err := work(ctx, r, &c, &res); err != nil {
			return nil, err
		}
		res.Elapsed, res.FirstPartition, res.Wait = c.sinceStart(), c.first, c.wait
		if err := r.account(ctx, &res); err != nil {
			return nil, err
		}
		ranks, err := gatherValues(ctx, r, res)
		if err != nil {
			return nil, err
		}
		if ranks != nil {
			all = append(all, ranks)
		}
	}
	return all, nil
}

// account adds what memory and communicator count since their start.
func (r *Rank) account(ctx context.Context, res *RankRun) error {
	stats, err := r.Comm.Stats(ctx)
	if err != nil {
		return fmt.Errorf("read statistics: %w", err)
	}
	res.PeakHost = r.Mem.Usage(buffer.Host).Peak
	res.PayloadCopies, res.Coalesced, res.Dropped = stats.PayloadCopies, stats.CoalescedBytes, stats.Dropped
	return nil
}

// traffic takes the counts of a finished shuffle, metadata included.
func (res *RankRun) traffic(s shuffle.Stats) {
	res.ChunksSent, res.ChunksReceived, res.ChunksSelf = s.ChunksSent, s.ChunksReceived, s.ChunksLocal
	res.BytesSent, res.BytesReceived, res.BytesSelf = s.BytesSent, s.BytesReceived, s.BytesLocal
	res.SentTo = slices.Clone(s.SentTo)
	res.SentTo[res.Rank] = s.BytesLocal
}

// Owner names a placement of partitions.
type Owner string

// The placements, by the names of the command line.
const (
	RoundRobin Owner = "round-robin"
	Contiguous Owner = "contiguous"
)

func (o Owner) fn() shuffle.Owner {
	if o == Contiguous {
		return shuffle.Contiguous
	}
	return shuffle.RoundRobin
}

// partsOf counts the partitions of each rank.
func (o Owner) partsOf(parts, size int) []int64 {
	counts := make([]int64, size)
	owner := o.fn()
	for p := range parts {
		counts[owner(shuffle.PartID(p), parts, size)]++
	}
	return counts
}
