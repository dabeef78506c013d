package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/internal/bench/jsonschema"
	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// measured is a document of two ranks with one warmup and two runs.
func measured() *Document {
	d := New("shuffle")
	limit := int64(1 << 34)
	d.Ranks, d.Config, d.Complete = 2, map[string]int{"n": 1}, true
	d.Run = Run{ID: "00c0ffee", Argv: []string{"x"}, Host: []string{"host1"}, Transports: []string{"inproc"}, Labels: map[string]string{},
		Versions: map[string]string{"sluice": "0.9.0", "commit": "a1b2c3d", "go": "go"}, Env: map[string]string{}, Binding: "none"}
	d.Memory["host"] = Memory{Peak: 1 << 30, Limit: &limit}
	d.Summary.Peak.Host = 1 << 30
	d.Validation = Validation{Enabled: true, Digest: "0123456789abcdef"}
	elapsed := [][2]int64{{900e6, 900e6}, {100e6, 200e6}, {300e6, 250e6}}
	for run, ranks := range elapsed {
		for rank, ns := range ranks {
			d.Samples = append(d.Samples, Sample{Run: run, Warmup: run == 0, Rank: rank, Elapsed: ns, FirstPartition: ns / 2,
				BytesSent: 3e9, BytesReceived: 3e9, BytesSelf: int64(1+rank) * 1e9, Wait: ns / 4})
		}
	}
	d.Pairs = [][]int64{{1e9, 3e9}, {3e9, 2e9}}
	d.Counters["chunks_sent"] = Counter{2, 4, 2}
	d.Transports = []Transport{{"inproc", [][2]int{{0, 1}, {1, 0}}}}
	d.Summarize()
	return d
}

func TestSummarize(t *testing.T) {
	s := measured().Summary
	if s.Bytes != 9e9 || s.WireBytes != 6e9 || s.Elapsed.Count != 2 || s.Elapsed.Min != 200e6 || s.Elapsed.P50 != 200e6 || s.Elapsed.Max != 300e6 {
		t.Errorf("%+v", s)
	}
	if s.RankElapsed.Count != 4 || s.RankElapsed.Min != 100e6 || s.FirstPartition.Max != 150e6 || s.Slowest != 0 {
		t.Errorf("%+v", s)
	}
	if s.Alg != 45e9 || s.Bus != 22.5e9 || s.Wire != 30e9 || s.Skew != 10.0/9 {
		t.Errorf("%+v", s)
	}
	empty := New("shuffle")
	if empty.Summarize(); empty.Summary.Skew != 1 || empty.Summary.Alg != 0 {
		t.Errorf("%+v", empty.Summary)
	}
}

func TestText(t *testing.T) {
	d := measured()
	d.Fallbacks = []Fallback{{"gds", "not loaded"}}
	d.Table = &Table{RowsIn: 1234567, Groups: 2, Keys: []string{"k"}, Columns: []string{"k", "count"}, Top: []Group{
		{[]any{"ä\nb"}, map[string]any{"count": 12}}, {[]any{nil}, map[string]any{"count": 3}}}}
	var out strings.Builder
	if err := d.WriteHeader(&out, "20 GiB in", 2, 1); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteText(&out, "x.json"); err != nil {
		t.Fatal(err)
	}
	want := `# sluice shuffle-bench 0.9.0 (a1b2c3d)  1 host x 2 ranks  comm=inproc  hash=xxh3  validate=on
# per rank: 20 GiB in   limit=16384MiB   warmup=1 runs=2
#      bytes     limit   min_ms   med_ms   p99_ms   max_ms  alg_GB/s  bus_GB/s  wire_GB/s  peak_GiB  skew  #wrong
  9000000000  16384MiB  200.000  200.000  300.000  300.000    45.000    22.500     30.000     1.000  1.11       0
# 1,234,567 rows, 2 groups by k
#    k  count
   ä b     12
  null      3
# slowest rank 0 (host1): 300.000 ms, 25 % waiting    fallbacks: gds: not loaded    report: x.json
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := d.WriteMarkdown(&out); err != nil || strings.Count(out.String(), "\n") != 3 || !strings.Contains(out.String(), "| 9000000000 | 16384MiB |") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestCSVAndJSON(t *testing.T) {
	d := measured()
	var out bytes.Buffer
	if err := d.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	got := map[string]string{}
	for i, name := range rows[0] {
		got[name] = rows[1][i]
	}
	if rows[0][0] != "bytes" || got["bytes"] != "9000000000" || got["elapsed_ns_p50"] != "200000000" || got["alg_bytes_per_s"] != "45000000000" || got["limit_host_bytes"] != "17179869184" {
		t.Errorf("%v", got)
	}
	schema, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "json-schema", "sluice.bench-1.json"))
	if err != nil {
		t.Fatal(err)
	}
	d.Table = &Table{Keys: []string{}, Columns: []string{}, Top: []Group{{[]any{1.5, nil}, map[string]any{"c": true}}}, PerRank: []RankRows{{1, 2, 3}}}
	d.Run.Start, d.Run.End = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
	out.Reset()
	if err := EncodeJSON(&out, d); err != nil {
		t.Fatal(err)
	}
	for _, err := range jsonschema.Validate(schema, out.Bytes()) {
		t.Error(err)
	}
}

func TestBytesAndGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 128 << 20: "128 MiB", 5 << 40: "5 TiB", 5 << 50: "5120 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// A file appears whole or not at all; an old one stays when the new one fails.
func TestToFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	boom := errors.New("boom")
	if err := ToFile(path, text("one")); err != nil {
		t.Fatal(err)
	}
	if err := ToFile(path, func(w io.Writer) error { _ = text("half")(w); return boom }); !errors.Is(err, boom) {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".*")); !reflect.DeepEqual(names, []string(nil)) {
		t.Errorf("left %q", names)
	}
	if err := ToFile(os.DevNull, text("x")); err != nil {
		t.Error(err)
	}
	if err := ToFile("/dev/full", text("x")); err == nil {
		t.Error("a full device is no error")
	}
}
