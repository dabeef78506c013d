package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sluice-engine/sluice/flow"
	"github.com/sluice-engine/sluice/internal/bench/report"
	"github.com/sluice-engine/sluice/internal/invariant"
)

// flightsFile returns the flight records, which it fetches if they are not there.
func flightsFile(t *testing.T) string {
	t.Helper()
	path := root("data", "flights-3m.parquet")
	if err := fetchFlights(); err != nil {
		t.Fatal(err)
	}
	return path
}

var fetchFlights = sync.OnceValue(func() error {
	if out, err := exec.Command(root("scripts", "data.sh")).CombinedOutput(); err != nil {
		return fmt.Errorf("data.sh: %w: %s", err, out)
	}
	return nil
})

// What the flight records hold, as found by other programs.
const (
	flights         = 3_000_000
	flightsDistance = 2_194_861_208
	flightsDelay    = 20_003_603
	flightsOrigins  = 229
)

// origins are rows of the result of grouping by origin: count, sum(distance),
// sum(delay).
var origins = map[string][3]string{
	"ORD": {"166341", "128190717", "1542589"},
	"DFW": {"157162", "119478685", "1210298"},
	"ATL": {"124711", "83824970", "1100966"},
	"LAX": {"115245", "116695403", "855417"},
	"PHX": {"93036", "78963102", "929839"},
	"ACY": {"1", "92", "98"},
}

// checkFlights checks a report on flights grouped by origin, and the file with
// all groups.
func checkFlights(t *testing.T, d *report.Document, ranks int, groups string) {
	t.Helper()
	tab := d.Table
	if !d.Complete || d.Validation.Wrong != 0 || d.Ranks != ranks || tab == nil {
		t.Fatalf("complete %v, ranks %d, validation %+v", d.Complete, d.Ranks, d.Validation)
	}
	if tab.RowsIn != flights || tab.Groups != flightsOrigins || d.Validation.RowsIn != flights || d.Validation.RowsOut != flights {
		t.Errorf("%d rows, %d groups, validation %+v", tab.RowsIn, tab.Groups, d.Validation)
	}
	if strings.Join(tab.Columns, " ") != "origin count sum(distance) sum(delay)" || len(tab.Top) != 20 {
		t.Errorf("columns %q, %d top groups", tab.Columns, len(tab.Top))
	}
	for i, name := range []string{"ORD", "DFW", "ATL", "LAX", "PHX"} {
		g, want := tab.Top[i], origins[name]
		if g.Key[0] != name || g.Values["count"] != json.Number(want[0]) || g.Values["sum(distance)"] != json.Number(want[1]) {
			t.Errorf("group %d is %v, want %s %v", i, g, name, want)
		}
	}
	var read, owned int64
	for rank, r := range tab.PerRank {
		read, owned = read+r.RowsRead, owned+r.RowsOwned
		if r.Rank != rank || r.RowsRead < flights/int64(ranks)*9/10 {
			t.Errorf("rank %d read %d rows of %d", r.Rank, r.RowsRead, flights)
		}
		for dst, n := range d.Pairs[rank] {
			if n <= 0 {
				t.Errorf("rank %d sent %d bytes to rank %d", rank, n, dst)
			}
		}
	}
	if len(tab.PerRank) != ranks || len(d.Pairs) != ranks || read != flights || owned != flights {
		t.Errorf("%d ranks read %d rows and own %d", len(tab.PerRank), read, owned)
	}
	checkGroups(t, groups)
}

func checkGroups(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) != flightsOrigins+1 {
		t.Fatalf("%d rows of groups, %v", len(rows), err)
	}
	var sums [3]int64
	found := 0
	for _, row := range rows[1:] {
		for i, text := range row[1:] {
			var n int64
			_, _ = fmt.Sscan(text, &n)
			sums[i] += n
		}
		if want, ok := origins[row[0]]; ok {
			found++
			if [3]string(row[1:]) != want {
				t.Errorf("%s: %v, want %v", row[0], row[1:], want)
			}
		}
	}
	if sums != [3]int64{flights, flightsDistance, flightsDelay} || found != len(origins) {
		t.Errorf("sums over groups %v, %d of %d origins", sums, found, len(origins))
	}
}

const flightAggs = "count,sum(distance),sum(delay)"

func groupFlights(t *testing.T, input string, ranks int, more ...string) *report.Document {
	t.Helper()
	groups := filepath.Join(t.TempDir(), "groups.csv")
	args := append([]string{"table", "-C", "inproc", "--ranks", fmt.Sprint(ranks), "--input", input, "--key", "origin",
		"--agg", flightAggs, "--groups", groups, "--json", "-"}, more...)
	d := reportOf(t, []byte(mustRun(t, args...)))
	checkFlights(t, d, ranks, groups)
	return d
}

// ranksOf leaves one number of ranks to checked builds, which are ten times
// slower; other packages check all numbers on less data.
func ranksOf(all ...int) []int {
	if invariant.Enabled {
		return []int{3}
	}
	return all
}

func TestFlightsParquet(t *testing.T) {
	digest := ""
	for _, ranks := range ranksOf(1, 2, 3, 4, 8) {
		d := groupFlights(t, flightsFile(t), ranks)
		if digest == "" {
			digest = d.Validation.Digest
		}
		if d.Validation.Digest != digest {
			t.Errorf("%d ranks: digest %s, %s before", ranks, d.Validation.Digest, digest)
		}
	}
}

// copyFlights writes the flight records in another format.
func copyFlights(t *testing.T, format flow.Format) string {
	t.Helper()
	in, err := flow.Open(flightsFile(t), flow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	path := filepath.Join(t.TempDir(), "flights")
	w, err := flow.Create(path, format, in.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for batch, err := range in.Share(0, 1).Batches(context.Background(), nil) {
		if err == nil {
			err = w.Write(batch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlightsCSV(t *testing.T) {
	path := copyFlights(t, flow.CSV)
	for _, ranks := range ranksOf(1, 3) {
		groupFlights(t, path, ranks)
	}
}

func TestFlightsArrow(t *testing.T) {
	path := copyFlights(t, flow.Arrow)
	for _, ranks := range ranksOf(1, 2, 3, 4, 8) {
		groupFlights(t, path, ranks)
	}
}

// flight is a row as another Parquet library reads it.
type flight struct {
	Origin      string `parquet:"origin,optional"`
	Destination string `parquet:"destination,optional"`
	Distance    int64  `parquet:"distance,optional"`
	Delay       int64  `parquet:"delay,optional"`
}

// The output is one Parquet file for each partition, and another library reads
// the same rows from it, each origin in one file only.
func TestFlightsOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	groupFlights(t, flightsFile(t), 3, "--output", dir, "--select", "origin,destination,distance,delay", "-o", "2")
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 6 || filepath.Base(names[5]) != "part-00005.parquet" {
		t.Fatalf("%q, %v", names, err)
	}
	var count, distance, delay int64
	home := map[string]string{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r := parquet.NewGenericReader[flight](f)
		if got := len(r.Schema().Fields()); got != 4 {
			t.Errorf("%s has %d columns", name, got)
		}
		rows := make([]flight, 10_000)
		for err == nil {
			var n int
			n, err = r.Read(rows)
			for _, row := range rows[:n] {
				count, distance, delay = count+1, distance+row.Distance, delay+row.Delay
				if h, ok := home[row.Origin]; ok && h != name {
					t.Fatalf("%s is in %s and in %s", row.Origin, h, name)
				}
				home[row.Origin] = name
			}
		}
		if err != io.EOF {
			t.Fatalf("%s: %v", name, err)
		}
		_ = r.Close()
		_ = f.Close()
	}
	if count != flights || distance != flightsDistance || delay != flightsDelay || len(home) != flightsOrigins {
		t.Errorf("%d rows, distance %d, delay %d, %d origins", count, distance, delay, len(home))
	}
}
