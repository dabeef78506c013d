package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/sluice-engine/sluice/internal/bench/machine"
	"github.com/sluice-engine/sluice/internal/bench/report"
	"github.com/sluice-engine/sluice/internal/bench/workload"
)

func newShuffle(a *app) *cobra.Command {
	var (
		c     common
		w     workload.Shuffle
		chunk = sizeFlag(1 << 20)
	)
	cmd := &cobra.Command{
		Use:   "shuffle",
		Short: "Exchange random bytes",
		Long: `Each rank inserts -p chunks of -n incompressible bytes into every one of
-o x ranks partitions, then takes its partitions and reads every byte.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.Plan, w.ChunkBytes = c.plan, int64(chunk)
			return a.measure(cmd.Context(), "shuffle", &c, &w, func(ctx context.Context, j *job) ([][]workload.RankRun, error) {
				return measureShuffle(ctx, j, &w)
			})
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.VarP(&chunk, "chunk-bytes", "n", "`size` of a chunk")
	f.Int64VarP(&w.Chunks, "chunks", "p", 8, "chunks that each rank inserts into every partition")
	spread(f, &w.PartsPerRank, &w.Owner, &w.SendOrder)
	c.register(f, 5, 2)
	return cmd
}

func measureShuffle(ctx context.Context, j *job, w *workload.Shuffle) ([][]workload.RankRun, error) {
	if err := checkShuffle(w, j.ranks); err != nil {
		return nil, err
	}
	if err := workload.CheckLimit(j.running.HostLimit(), w.ChunkBytes); err != nil {
		return nil, err
	}
	if err := checkFootprint(w.Footprint(j.ranks), j.running.HostLimit()); err != nil {
		return nil, err
	}
	parts := int64(w.PartsPerRank) * int64(j.ranks)
	err := j.announce(fmt.Sprintf("%s in, %s partitions x %s chunks of %s", report.Bytes(parts*w.Chunks*w.ChunkBytes),
		report.Grouped(parts), report.Grouped(w.Chunks), report.Bytes(w.ChunkBytes)))
	if err != nil {
		return nil, err
	}
	w.Faults = j.faults
	var runs [][]workload.RankRun
	err = j.running.Run(ctx, func(ctx context.Context, r *workload.Rank) error {
		found, err := w.Run(ctx, r)
		if r.ID == 0 {
			runs = found
		}
		return err
	})
	return runs, err
}

func checkShuffle(w *workload.Shuffle, ranks int) error {
	switch {
	case w.ChunkBytes < 1:
		return usage("--chunk-bytes is %d: want at least 1", w.ChunkBytes)
	case w.Chunks < 1 || w.Chunks > math.MaxUint32:
		return usage("--chunks is %d: want 1 to %d", w.Chunks, uint32(math.MaxUint32))
	}
	return checkParts(w.PartsPerRank, ranks)
}

// checkFootprint refuses what could only end in the system's killing this
// process, or another one. With a limit running out of memory is an error.
func checkFootprint(bytes float64, limit int64) error {
	free := machine.Available()
	switch {
	case bytes >= math.MaxInt64:
		return usage("the chunks of all ranks take %.3g bytes. Exchange less at once", bytes)
	case limit == math.MaxInt64 && free > 0 && bytes > float64(free):
		return usage("the chunks of all ranks take %s, this machine has %s left. Exchange less at once, or set --limit-host", report.Bytes(int64(bytes)), report.Bytes(free))
	}
	return nil
}
