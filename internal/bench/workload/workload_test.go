package workload

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/flow"
	"github.com/sluice-engine/sluice/internal/leak"
	"github.com/sluice-engine/sluice/tables"
)

func TestMain(m *testing.M) { leak.Main(m) }

// startRanks starts ranks that the end of the test closes, without anything left in
// their accounts.
func startRanks(t *testing.T, n int, limit buffer.Limit) *Job {
	t.Helper()
	j, err := StartInproc(n, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func TestFillIsIncompressibleAndRepeatable(t *testing.T) {
	b := make([]byte, 1<<16+5)
	fill(b, 7)
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() < len(b) {
		t.Errorf("%d bytes shrink to %d", len(b), packed.Len())
	}
	again, other := make([]byte, len(b)), make([]byte, len(b))
	fill(again, 7)
	fill(other, 8)
	if !bytes.Equal(b, again) || bytes.Equal(b, other) || bytes.Equal(b[:64], other[8:72]) {
		t.Error("the bytes do not depend on the seed alone")
	}
	if readAll([]byte{1, 0, 0, 0, 0, 0, 0, 1, 2, 3}) != 1+1<<56+5 {
		t.Error("not every byte is read")
	}
}

// Results of any size reach rank 0 in rank order, also under a small limit.
func TestGather(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		for _, size := range []int{0, 1, gatherPiece, 3*gatherPiece + 17} {
			j := startRanks(t, n, buffer.Bytes(1<<20))
			err := j.Run(t.Context(), func(ctx context.Context, r *Rank) error {
				all, err := r.gather(ctx, bytes.Repeat([]byte{byte(r.ID)}, size*r.ID))
				if err != nil || r.ID != 0 {
					if all != nil {
						return fmt.Errorf("rank %d has results", r.ID)
					}
					return err
				}
				for id, b := range all {
					if len(b) != size*id || bytes.Count(b, []byte{byte(id)}) != len(b) {
						return fmt.Errorf("%d bytes from rank %d", len(b), id)
					}
				}
				return nil
			})
			if err != nil {
				t.Errorf("%d ranks, %d bytes: %v", n, size, err)
			}
		}
	}
}

// The first error is told, not its echo on other ranks, and nobody waits.
func TestRunTellsTheFirstError(t *testing.T) {
	boom := errors.New("boom")
	for _, n := range []int{1, 3, 8} {
		j, err := StartInproc(n, buffer.Limit{})
		if err != nil {
			t.Fatal(err)
		}
		err = j.Run(t.Context(), func(ctx context.Context, r *Rank) error {
			if r.ID == n-1 {
				return boom
			}
			return r.Comm.Barrier(ctx)
		})
		var re *RankError
		if !errors.Is(err, boom) || !errors.As(err, &re) || re.Rank != n-1 {
			t.Errorf("%d ranks: %v", n, err)
		}
		_ = j.Close() // of a failed job
	}
}

// runShuffle returns the results of rank 0.
func runShuffle(t *testing.T, j *Job, w *Shuffle) ([][]RankRun, error) {
	t.Helper()
	var runs [][]RankRun
	err := j.Run(t.Context(), func(ctx context.Context, r *Rank) error {
		found, err := w.Run(ctx, r)
		if r.ID == 0 {
			runs = found
		}
		return err
	})
	return runs, err
}

func TestShuffleDigests(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		for _, owner := range []Owner{RoundRobin, Contiguous} {
			j := startRanks(t, n, buffer.Bytes(8<<20))
			w := &Shuffle{Plan: Plan{Runs: 2, Warmups: 1, Validate: true}, ChunkBytes: 100, Chunks: 7, PartsPerRank: 3, Owner: owner}
			runs, err := runShuffle(t, j, w)
			if err != nil || len(runs) != 3 {
				t.Fatal(runs, err)
			}
			in, out, bad := Check(runs)
			if bad != 0 || in.String() != out.String() || in.Chunks != int64(3*n*3*n*7) || out.Chunks != in.Chunks {
				t.Errorf("%d ranks, %s: %d wrong, %d chunks in, %d out", n, owner, bad, in.Chunks, out.Chunks)
			}
			for _, ranks := range runs {
				for i, r := range ranks {
					if r.Rank != i || r.BytesSelf != 3*7*100 || r.SentTo[i] != r.BytesSelf || r.Elapsed < r.FirstPartition || r.FirstPartition <= 0 {
						t.Errorf("%+v", r)
					}
				}
			}
		}
	}
}

// More than the limit with nobody extracting: every rank learns that memory is
// out, and nothing is left.
func TestShuffleOutOfMemory(t *testing.T) {
	j, err := StartInproc(2, buffer.Bytes(2<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, err = runShuffle(t, j, &Shuffle{Plan: Plan{Runs: 1, Validate: true}, ChunkBytes: 64 << 10, Chunks: 64, PartsPerRank: 2, Owner: RoundRobin})
	var noMemory *buffer.NoMemoryError
	if !errors.As(err, &noMemory) {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("left over: %v", err)
	}
}

func TestDifferencesAreCounted(t *testing.T) {
	run := func(in, out Digest, misplaced int64) [][]RankRun {
		return [][]RankRun{{{In: in, Misplaced: misplaced}, {Out: out}}}
	}
	rows := func(n, sum uint64) Digest { return Digest{Rows: tables.MultisetSum{Rows: n, Sum: sum}} }
	parts := func(p ...PartSum) Digest { return Digest{Parts: p} }
	none := PartSum{}
	for name, c := range map[string]struct {
		runs [][]RankRun
		want int64
	}{
		"equal rows":     {run(rows(5, 7), rows(5, 7), 0), 0},
		"changed row":    {run(rows(5, 7), rows(5, 8), 0), 1},
		"lost rows":      {run(rows(5, 7), rows(2, 7), 0), 3},
		"doubled rows":   {run(rows(5, 7), rows(9, 7), 0), 4},
		"misplaced rows": {run(rows(5, 7), rows(5, 7), 2), 2},
		"equal parts":    {run(parts(PartSum{1, 2}, none), parts(PartSum{1, 2}, none), 0), 0},
		"moved chunk":    {run(parts(PartSum{1, 2}, none), parts(none, PartSum{1, 2}), 0), 2},
		"changed chunk":  {run(parts(PartSum{1, 2}, none), parts(PartSum{1, 3}, none), 0), 1},
	} {
		for _, ranks := range c.runs {
			for i := range ranks { // every rank has sums of all partitions
				if n := max(len(ranks[0].In.Parts), len(ranks[1].Out.Parts)); n > 0 {
					if ranks[i].In.Parts == nil {
						ranks[i].In.Parts = make([]PartSum, n)
					}
					if ranks[i].Out.Parts == nil {
						ranks[i].Out.Parts = make([]PartSum, n)
					}
				}
			}
		}
		if _, _, got := Check(c.runs); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if a, b := parts(PartSum{1, 2}, none), parts(none, PartSum{1, 2}); a.String() == b.String() {
		t.Error("exchanged partitions have one digest")
	}
}

func TestCheckLimit(t *testing.T) {
	for _, c := range []struct {
		limit, chunk int64
		ok           bool
	}{{math.MaxInt64, 1 << 40, true}, {16 << 20, 1 << 20, true}, {16<<20 - 1, 1 << 20, false}, {1024, 64, true}, {1023, 1, false}} {
		if err := CheckLimit(c.limit, c.chunk); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrLimit) {
			t.Errorf("%d, %d: %v", c.limit, c.chunk, err)
		}
	}
	for limit, want := range map[int64]int64{1 << 20: 64 << 10, 8 << 20: 128 << 10, math.MaxInt64: 1 << 20} {
		if got := TableChunk(limit); got != want {
			t.Errorf("limit %d: chunks of %d, want %d", limit, got, want)
		}
	}
}

// A table whose rows have nulls, text with quotes and more groups than
// partitions, over several inputs.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	var inputs []string
	for i := range 3 {
		var text strings.Builder
		text.WriteString("k,v,w\n")
		for row := range 500 {
			fmt.Fprintf(&text, "key \"\"%d,%d,%d.5\n", row%37, row, i)
		}
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text.String(), `""`, "")), 0o666); err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, path)
	}
	for _, n := range []int{1, 2, 3, 5, 8} {
		for _, format := range []flow.Format{flow.Parquet, flow.Arrow, flow.CSV} {
			out := filepath.Join(dir, fmt.Sprintf("out-%d-%s", n, format))
			cfg := TableConfig{Plan: Plan{Runs: 2, Validate: true}, Inputs: inputs, Keys: []string{"k"}, Aggregate: true,
				Aggs: []flow.Agg{{Func: flow.Count}, {Func: flow.Sum, Column: "v"}}, PartsPerRank: 2, Owner: RoundRobin,
				SendOrder: comm.OrderRank, Output: out, Format: format, Select: []string{"w", "k"}}
			table, err := OpenTable(cfg)
			if err != nil {
				t.Fatal(err)
			}
			result, err := runTable(t, startRanks(t, n, buffer.Bytes(4<<20)), table)
			if err != nil {
				t.Fatal(err)
			}
			checkTable(t, result, out, 2*n)
			result.Groups.Release()
			if err := table.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func runTable(t *testing.T, j *Job, table *Table) (TableResult, error) {
	t.Helper()
	var result TableResult
	err := j.Run(t.Context(), func(ctx context.Context, r *Rank) error {
		found, err := table.Run(ctx, r)
		if r.ID == 0 {
			result = found
		}
		return err
	})
	return result, err
}

func checkTable(t *testing.T, result TableResult, out string, parts int) {
	t.Helper()
	in, _, bad := Check(result.Runs)
	if bad != 0 || in.Rows.Rows != 3000 || len(result.Runs) != 2 {
		t.Errorf("%d wrong, %d rows, %d runs", bad, in.Rows.Rows, len(result.Runs))
	}
	var groups strings.Builder
	if err := result.Groups.WriteCSV(&groups); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(groups.String(), "\n")
	if lines[0] != "k,count,sum(v)" || len(lines) != 39 || lines[1] != "key 0,42,10101" {
		t.Errorf("%q", lines[:2])
	}
	var rows int64
	for p := range parts {
		input, err := flow.Open(filepath.Join(out, flow.PartName(p, flow.Format(out[strings.LastIndex(out, "-")+1:]))), flow.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if f := input.Schema().Fields(); len(f) != 2 || f[0].Name != "w" || f[1].Name != "k" {
			t.Errorf("columns %v", f)
		}
		for batch, err := range input.Share(0, 1).Batches(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			rows += batch.NumRows()
		}
		_ = input.Close()
	}
	if rows != 1500 {
		t.Errorf("%d rows are in the output", rows)
	}
}
