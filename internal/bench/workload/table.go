package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/flow"
	"github.com/sluice-engine/sluice/shuffle"
	"github.com/sluice-engine/sluice/tables"
)

// TableResult is what rank 0 knows in the end.
type TableResult struct {
	Runs   [][]RankRun
	Groups *flow.Groups // nil without aggregation; Release it
}

// TableChunk is the size of a chunk's payload, at most, under a limit of host
// memory: small enough that many fit.
func TableChunk(limit int64) int64 { return max(64<<10, min(1<<20, limit/64)) }

// Run runs the workload on one rank; the others than rank 0 get a zero result.
func (t *Table) Run(ctx context.Context, r *Rank) (TableResult, error) {
	side := &tableRank{Table: t, r: r}
	runs, err := measure(ctx, r, t.cfg.Plan, side.once)
	if err != nil || side.groups == nil {
		return TableResult{Runs: runs}, err
	}
	groups, err := gatherGroups(ctx, r, len(t.cfg.Keys), side.groups)
	return TableResult{runs, groups}, err
}

// tableRank is the workload on one rank.
type tableRank struct {
	*Table
	r      *Rank
	parts  int
	groups *flow.Aggregate
}

// tools are what a run needs on each side of the exchange.
type tools struct {
	split    *tables.Partitioner
	hash     *tables.Hasher   // of received rows, to check their place
	in, out  *tables.Digester // nil without validation
	shuffler *shuffle.ShufflerAsync
}

func (t *tableRank) once(ctx context.Context, r *Rank, clock *clock, res *RankRun) (err error) {
	t.parts = t.cfg.PartsPerRank * r.Size
	if t.groups, err = t.aggregate(); err != nil {
		return err
	}
	tl := tools{}
	cfg := tables.Config{Keys: t.cfg.Keys, Parts: t.parts, MaxChunk: TableChunk(r.Mem.Usage(buffer.Host).Limit)}
	if tl.split, err = tables.NewPartitioner(t.codec, cfg); err != nil {
		return err
	}
	if t.cfg.Validate {
		if err := t.validators(&tl); err != nil {
			return err
		}
	}
	tl.shuffler, err = shuffle.New(r.Comm, r.Mem, shuffle.Config{Op: r.scope.NextOp(), Parts: t.parts, Owner: t.cfg.Owner.fn(), Order: t.cfg.SendOrder})
	if err != nil {
		return err
	}
	if err = t.send(ctx, &tl, res); err == nil {
		err = t.receive(ctx, &tl, clock, res)
	}
	if t.cfg.Validate {
		res.In.Rows, res.Out.Rows = tl.in.Sum(), tl.out.Sum()
	}
	res.traffic(tl.shuffler.Stats())
	return errors.Join(err, tl.shuffler.Close())
}

func (t *tableRank) validators(tl *tools) (err error) {
	if tl.hash, err = tables.NewHasher(t.codec.Schema(), t.cfg.Keys, 0); err != nil {
		return err
	}
	if tl.in, err = tables.NewDigester(t.codec.Schema()); err != nil {
		return err
	}
	tl.out, err = tables.NewDigester(t.codec.Schema())
	return err
}

// send reads this rank's share of every input and inserts its rows.
func (t *tableRank) send(ctx context.Context, tl *tools, res *RankRun) error {
	for _, input := range t.inputs {
		for batch, err := range input.Share(t.r.ID, t.r.Size).Batches(ctx, t.columns) {
			if err != nil {
				return err
			}
			res.RowsRead += batch.NumRows()
			if tl.in != nil {
				if err := tl.in.Add(batch); err != nil {
					return fmt.Errorf("digest rows: %w", err)
				}
			}
			for chunk, err := range tl.split.Partition(ctx, t.r.Mem, batch) {
				if err != nil {
					return err
				}
				res.In.Chunks++
				if err := insert(ctx, tl.shuffler, shuffle.PartID(chunk.Part), chunk.Data); err != nil {
					return err
				}
			}
		}
	}
	return tl.shuffler.InsertFinished()
}

// receive takes the partitions of this rank as they become complete.
func (t *tableRank) receive(ctx context.Context, tl *tools, clock *clock, res *RankRun) error {
	for {
		stop := clock.waiting()
		p, err := tl.shuffler.NextPartition(ctx)
		stop()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		clock.firstPartition()
		if err := t.partition(ctx, tl, p, res); err != nil {
			return err
		}
	}
}

// partition consumes one partition and, if asked to, writes it to its file.
func (t *tableRank) partition(ctx context.Context, tl *tools, p shuffle.PartID, res *RankRun) error {
	var file *flow.Writer
	if t.cfg.Output != "" {
		path := filepath.Join(t.cfg.Output, flow.PartName(int(p), t.cfg.Format))
		var err error
		if file, err = flow.Create(path, t.cfg.Format, project(t.codec.Schema(), t.output)); err != nil {
			return err
		}
		defer file.Discard() // nothing after Commit
	}
	for d, err := range tl.shuffler.Extract(ctx, p) {
		if err != nil {
			return err
		}
		if err := t.chunk(ctx, tl, p, d, file, res); err != nil {
			return err
		}
	}
	if file != nil {
		return file.Commit()
	}
	return nil
}

// chunk takes one received chunk over.
func (t *tableRank) chunk(ctx context.Context, tl *tools, p shuffle.PartID, d *buffer.PackedData, file *flow.Writer, res *RankRun) error {
	act := t.cfg.Faults.Next()
	if d.Data != nil {
		if err := d.Data.OnHost(ctx, func(b []byte) error { act.Corrupt(b); return nil }); err != nil {
			d.Release()
			return fmt.Errorf("read chunk: %w", err)
		}
	}
	batch, err := t.codec.Unpack(ctx, d)
	var corrupt *buffer.CorruptError
	if errors.As(err, &corrupt) {
		d.Release()
		res.Misplaced++ // what it should have held is missing in the digest too
		return nil
	}
	if err != nil {
		d.Release()
		return err
	}
	defer batch.Release()
	for range act.Times() {
		if err := t.rows(tl, act.Part(uint32(p)), batch, file, res); err != nil {
			return err
		}
	}
	return nil
}

// rows is given each batch that was received for a partition.
func (t *tableRank) rows(tl *tools, part uint32, batch arrow.RecordBatch, file *flow.Writer, res *RankRun) error {
	res.Out.Chunks++
	res.RowsOwned += batch.NumRows()
	if tl.out != nil {
		if err := tl.out.Add(batch); err != nil {
			return fmt.Errorf("digest rows: %w", err)
		}
		hashes, err := tl.hash.Hash(batch, nil)
		if err != nil {
			return err
		}
		for _, h := range hashes {
			if tables.PartitionOf(h, t.parts) != part {
				res.Misplaced++
			}
		}
	}
	if t.groups != nil {
		if err := t.groups.Add(batch); err != nil {
			return err
		}
	}
	if file == nil {
		return nil
	}
	columns := make([]arrow.Array, len(t.output))
	for i, c := range t.output {
		columns[i] = batch.Column(c)
	}
	picked := array.NewRecordBatch(project(batch.Schema(), t.output), columns, batch.NumRows())
	defer picked.Release()
	return file.Write(picked)
}

// DiscardOutput removes what a failed job of the given number of ranks wrote.
func (t *Table) DiscardOutput(ranks int) {
	for p := 0; t.cfg.Output != "" && p < t.cfg.PartsPerRank*ranks; p++ {
		_ = os.Remove(filepath.Join(t.cfg.Output, flow.PartName(p, t.cfg.Format))) // it may never have come to be
	}
}
