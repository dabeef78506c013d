package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-engine/sluice/flow"
	"github.com/sluice-engine/sluice/internal/bench/report"
	"github.com/sluice-engine/sluice/internal/bench/workload"
)

// tableFlags are the flags of the table command.
type tableFlags struct {
	common
	cfg    workload.TableConfig
	keys   columnsFlag
	chosen columnsFlag
	aggs   string
	format string
	groups string // file for all groups
}

// topGroups is how many groups a report shows.
const topGroups = 20

func newTable(a *app) *cobra.Command {
	var t tableFlags
	cmd := &cobra.Command{
		Use:   "table --input FILE... --key COLUMN",
		Short: "Exchange the rows of real tables by key",
		Long: `Each rank reads its share of the inputs (Parquet, Arrow IPC or CSV), partitions
the rows by the hash of the key columns, and exchanges them. The owner of a
partition then aggregates its rows by key, or writes them to one file for each
partition (--output), or both (--output and --agg).`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.cfg.Inputs = append(t.cfg.Inputs, args...)
			return a.measure(cmd.Context(), "table", &t.common, &t.cfg, t.measure)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVar(&t.cfg.Inputs, "input", nil, "`file` to read; may be repeated, and more may follow as arguments")
	f.Var(&t.keys, "key", "`columns` to partition and group by, parted by commas")
	f.Var(&t.chosen, "select", "`columns` to write with --output, parted by commas (default all)")
	f.StringVar(&t.aggs, "agg", "", "aggregates of each group, such as count,sum(a),min(b),max(c) (default count, none with --output)")
	spread(f, &t.cfg.PartsPerRank, &t.cfg.Owner, &t.cfg.SendOrder)
	f.StringVar(&t.cfg.Output, "output", "", "write each partition to a file in `directory`, which must be empty or not there")
	f.StringVar(&t.format, "format", "parquet", "of these files: parquet, arrow or csv")
	f.StringVar(&t.groups, "groups", "", "write all groups as CSV to `file`")
	t.register(f, 1, 0)
	return cmd
}

// check completes the configuration.
func (t *tableFlags) check(ranks int) error {
	cfg := &t.cfg
	cfg.Plan, cfg.Keys, cfg.Select, cfg.Format = t.plan, t.keys, t.chosen, flow.Format(t.format)
	switch {
	case len(cfg.Inputs) == 0:
		return usage("no input. Name one with --input FILE")
	case len(cfg.Keys) == 0:
		return usage("no key. Name one with --key COLUMN")
	case len(cfg.Select) > 0 && cfg.Output == "":
		return usage("--select chooses what --output writes, which is not given")
	case !slices.Contains([]flow.Format{flow.Parquet, flow.Arrow, flow.CSV}, cfg.Format):
		return usage("--format is %q: want parquet, arrow or csv", t.format)
	}
	cfg.Aggregate = t.aggs != "" || cfg.Output == "" || t.groups != ""
	if t.aggs == "" && cfg.Aggregate {
		t.aggs = string(flow.Count)
	}
	cfg.AggNames = []string{}
	if cfg.Aggregate {
		aggs, err := flow.ParseAggs(t.aggs)
		if err != nil {
			return usage("%w", err)
		}
		cfg.Aggs = aggs
		for _, agg := range aggs {
			cfg.AggNames = append(cfg.AggNames, agg.String())
		}
	}
	return checkParts(cfg.PartsPerRank, ranks)
}

func (t *tableFlags) measure(ctx context.Context, j *job) (runs [][]workload.RankRun, err error) {
	if err := t.check(j.ranks); err != nil {
		return nil, err
	}
	limit := j.running.HostLimit()
	if err := workload.CheckLimit(limit, workload.TableChunk(limit)); err != nil {
		return nil, err
	}
	t.cfg.Faults = j.faults
	table, err := workload.OpenTable(t.cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			table.DiscardOutput(j.ranks)
		}
		err = errors.Join(err, table.Close())
	}()
	if err := j.announce(t.describe(j.ranks)); err != nil {
		return nil, err
	}
	var result workload.TableResult
	err = j.running.Run(ctx, func(ctx context.Context, r *workload.Rank) error {
		found, err := table.Run(ctx, r)
		if r.ID == 0 {
			result = found
		}
		return err
	})
	if result.Groups != nil {
		defer result.Groups.Release()
	}
	if err != nil {
		return nil, err
	}
	return result.Runs, t.report(j, result)
}

// describe tells what each rank does.
func (t *tableFlags) describe(ranks int) string {
	what := fmt.Sprintf("%d inputs", len(t.cfg.Inputs))
	if len(t.cfg.Inputs) == 1 {
		what = filepath.Base(t.cfg.Inputs[0])
	}
	return fmt.Sprintf("1/%d of %s by %s, %s partitions", ranks, what, strings.Join(t.cfg.Keys, ", "), report.Grouped(int64(t.cfg.PartsPerRank*ranks)))
}

// report enters the result of the last run into the document.
func (t *tableFlags) report(j *job, result workload.TableResult) error {
	d := &report.Table{Keys: t.cfg.Keys, Columns: []string{}, Top: []report.Group{}, PerRank: []report.RankRows{}}
	for _, r := range result.Runs[len(result.Runs)-1] {
		d.RowsIn += r.RowsRead
		d.PerRank = append(d.PerRank, report.RankRows{Rank: r.Rank, RowsRead: r.RowsRead, RowsOwned: r.RowsOwned})
	}
	j.doc.Table = d
	if result.Groups == nil {
		return nil
	}
	batch := result.Groups.Batch
	d.Groups = batch.NumRows()
	for _, f := range batch.Schema().Fields() {
		d.Columns = append(d.Columns, f.Name)
	}
	for _, row := range result.Groups.Order[:min(topGroups, len(result.Groups.Order))] {
		g := report.Group{Key: []any{}, Values: map[string]any{}}
		for c, col := range batch.Columns() {
			if c < len(t.cfg.Keys) {
				g.Key = append(g.Key, flow.JSON(col, row))
			} else {
				g.Values[batch.ColumnName(c)] = flow.JSON(col, row)
			}
		}
		d.Top = append(d.Top, g)
	}
	return j.writeTo(j.path(t.groups), func(w io.Writer) error { return result.Groups.WriteCSV(w) })
}
