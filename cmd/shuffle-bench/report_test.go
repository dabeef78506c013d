package main

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-engine/sluice/internal/bench/jsonschema"
)

// quick is a shuffle that takes no time.
var quick = []string{"shuffle", "-n", "1KiB", "-p", "3", "-o", "2", "-r", "3", "-w", "1", "--ranks", "2"}

func TestTextReport(t *testing.T) {
	out := mustRun(t, quick...)
	want := regexp.MustCompile(`^# sluice shuffle-bench \S+ \(\S+\)  1 host x 2 ranks  comm=inproc  hash=xxh3  validate=on
# per rank: 12 KiB in, 4 partitions x 3 chunks of 1 KiB   limit=none   warmup=1 runs=3
# +bytes  limit +min_ms +med_ms +p99_ms +max_ms  alg_GB/s  bus_GB/s  wire_GB/s  peak_GiB  skew  #wrong
 +24576   none +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+  1.00       0
# slowest rank \d \(\S+\): [\d.]+ ms, \d+ % waiting    fallbacks: none
$`)
	if !want.MatchString(out) {
		t.Errorf("%s", out)
	}
}

func TestTableTextReport(t *testing.T) {
	out := mustRun(t, "table", "--input", smallTable(t), "--key", "k", "--agg", "sum(v),max(k)", "--ranks", "3")
	for _, want := range []string{
		"# per rank: 1/3 of small.csv by k, 12 partitions   limit=none   warmup=0 runs=1\n",
		"# 1,000 rows, 10 groups by k\n# k  count  sum(v)  max(k)\n  a    100     100       a\n  b    100     200       b\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// Every number of ranks, placement and order moves all bytes, and the report
// holds exact counts.
func TestShuffleReport(t *testing.T) {
	for i, ranks := range []int{1, 2, 3, 5, 8} {
		args := []string{"shuffle", "-n", "2000", "-p", "5", "-o", "3", "--ranks", fmt.Sprint(ranks), "-r", "2", "-w", "1", "--expect-ranks", fmt.Sprint(ranks),
			"--owner", []string{"round-robin", "contiguous"}[i%2], "--send-order", []string{"partition", "rank", "none"}[i%3],
			"--limit-host", "16MiB", "--label", "a=b", "--label", "c=d=e", "--json", "-"}
		d := reportOf(t, []byte(mustRun(t, args...)))
		parts, n := int64(3*ranks), int64(ranks)
		bytes, chunks := n*parts*5*2000, 3*n*parts*5
		s, v := d.Summary, d.Validation
		if !d.Complete || s.Bytes != bytes || s.WireBytes != bytes*(n-1)/n || s.Elapsed.Count != 2 || len(d.Samples) != 3*ranks || s.Skew != 1 {
			t.Errorf("%d ranks: complete %v, summary %+v", ranks, d.Complete, s)
		}
		if v.Wrong != 0 || v.ChunksIn != chunks || v.ChunksOut != chunks || len(v.Digest) != 16 || !v.Enabled {
			t.Errorf("%d ranks: %d chunks expected: %+v", ranks, chunks, v)
		}
		for src, row := range d.Pairs {
			for dst, got := range row {
				if got != 3*5*2000 {
					t.Errorf("%d ranks: %d bytes from %d to %d", ranks, got, src, dst)
				}
			}
		}
		for _, x := range d.Samples {
			if x.BytesSelf != 30_000 || x.BytesSent != 30_000*(n-1) || x.BytesReceived != x.BytesSent || x.Elapsed <= 0 || x.FirstPartition <= 0 || x.Warmup != (x.Run == 0) {
				t.Errorf("%d ranks: %+v", ranks, x)
			}
		}
		if m := d.Memory["host"]; m.Peak <= 0 || m.Peak != s.Peak.Host || m.Limit == nil || *m.Limit != 16<<20 || m.Peak > *m.Limit {
			t.Errorf("%d ranks: memory %+v", ranks, m)
		}
		if d.Counters["chunks_self"].Sum*n != chunks || d.Counters["payload_copied_bytes"].Count != ranks || len(d.Transports[0].Pairs) != ranks*(ranks-1) {
			t.Errorf("%d ranks: counters %v, transports %v", ranks, d.Counters, d.Transports)
		}
		if d.Run.Labels["a"] != "b" || d.Run.Labels["c"] != "d=e" || d.Run.Versions["go"] != runtime.Version() {
			t.Errorf("run %+v", d.Run)
		}
	}
}

// Ranks in one process hand payloads over: large ones are never copied.
func TestNoPayloadCopies(t *testing.T) {
	d := reportOf(t, []byte(mustRun(t, "shuffle", "-n", "1MiB", "-p", "2", "-r", "1", "-w", "0", "--json", "-")))
	if c := d.Counters["payload_copied_bytes"]; c.Sum != 0 || d.Summary.WireBytes != 96<<20 {
		t.Errorf("%d bytes on the wire, copied %+v", d.Summary.WireBytes, c)
	}
}

func TestWithoutValidation(t *testing.T) {
	d := reportOf(t, []byte(mustRun(t, append(quick, "--validate=false", "--json", "-")...)))
	if d.Validation.Enabled || d.Validation.Wrong != 0 {
		t.Errorf("%+v", d.Validation)
	}
	out := mustRun(t, "table", "--input", smallTable(t), "--key", "k", "--validate=false")
	if !strings.Contains(out, "validate=off") || !strings.Contains(out, "1,000 rows, 10 groups") {
		t.Error(out)
	}
}

// The environment is captured but for what sounds like a secret.
func TestEnvironmentInReport(t *testing.T) {
	cmd := command(t, append(quick, "--json", "-")...)
	cmd.Env = append(cmd.Env, "UCX_TLS=tcp", "SLURM_JWT=x", "SLUICE_TOKEN=x", "OMPI_MCA_key=x", "EDITOR=vi", "SLURM_JOB_ID=7")
	o := finish(t, cmd)
	d := reportOf(t, []byte(o.stdout))
	if got := fmt.Sprint(d.Run.Env); got != "map[SLURM_JOB_ID:7 UCX_TLS:tcp]" {
		t.Error(got)
	}
}

func TestReportFiles(t *testing.T) {
	dir := t.TempDir()
	out := mustRun(t, append(quick, "--json", filepath.Join(dir, "%r.json"), "--csv", filepath.Join(dir, "x.csv"), "--md", filepath.Join(dir, "x.md"))...)
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 3 || !strings.Contains(out, "report: "+names[0]+"\n") {
		t.Fatalf("%q, %v, %s", names, err, out)
	}
	d := readReport(t, names[0])
	if filepath.Base(names[0]) != d.Run.ID+".json" {
		t.Errorf("%s has id %s", names[0], d.Run.ID)
	}
	text, err := os.ReadFile(names[1])
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(rows) != 2 || rows[0][0] != "bytes" || rows[1][0] != "24576" || rows[1][len(rows[1])-1] != "true" {
		t.Errorf("%q, %v", rows, err)
	}
	text, err = os.ReadFile(names[2])
	if err != nil || !regexp.MustCompile(`^\| bytes \| limit .*\|\n\|( ---: \|)+\n\| 24576 \| none .*\|\n$`).Match(text) {
		t.Errorf("%s, %v", text, err)
	}
	for _, flag := range []string{"--csv", "--md", "--json"} {
		out := mustRun(t, append(quick, flag, "-")...)
		if strings.Contains(out, "# sluice") {
			t.Errorf("%s -: the table is in the way: %s", flag, out)
		}
	}
}

// A report that cannot be written is an error with its reason.
func TestWriteErrors(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	for _, args := range [][]string{quick, {"--help"}, {"help", "table"}, {"version"}, {"--version"}, {"doctor"}, append(quick, "--json", "-")} {
		cmd := command(t, args...)
		cmd.Stdout = full
		if o := finish(t, cmd); o.code != 1 || !errorLine.MatchString(o.stderr) || !strings.Contains(o.stderr, "no space left on device") {
			t.Errorf("%q to a full disk: exit %d: %s", args, o.code, o.stderr)
		}
	}
	for _, path := range []string{"/dev/full", filepath.Join(t.TempDir(), "no", "dir", "x")} {
		for _, flag := range []string{"--json", "--csv", "--md"} {
			if o := finish(t, command(t, append(quick, flag, path)...)); o.code != 1 || !errorLine.MatchString(o.stderr) {
				t.Errorf("%s %s: exit %d: %s", flag, path, o.code, o.stderr)
			}
		}
	}
	o := finish(t, command(t, "table", "--input", smallTable(t), "--key", "k", "--groups", "/dev/full"))
	if o.code != 1 || !errorLine.MatchString(o.stderr) {
		t.Errorf("--groups: exit %d: %s", o.code, o.stderr)
	}
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode().IsRegular() {
		t.Error("/dev/full was replaced")
	}
}

// A reader that has seen enough is no error.
func TestClosedPipe(t *testing.T) {
	for _, args := range [][]string{quick, {"--help"}, append(quick, "--json", "-")} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		cmd := command(t, args...)
		cmd.Stdout = w
		if o := finish(t, cmd); o.code != 0 || o.stderr != "" {
			t.Errorf("%q: exit %d: %s", args, o.code, o.stderr)
		}
		_ = w.Close()
	}
}

// A signal stops all ranks, says so, and leaves no output.
func TestSignals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		for _, args := range [][]string{
			{"shuffle", "-r", "1000000", "-n", "64KiB"},
			{"table", "--input", smallTable(t), "--key", "k", "-r", "1000000", "--output", dir},
		} {
			path := filepath.Join(t.TempDir(), "x.json")
			cmd := command(t, append(args, "--json", path)...)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_ = cmd.Wait() // the code is looked at below
			if got := cmd.ProcessState.ExitCode(); got != code || !errorLine.MatchString(stderr.String()) || time.Since(start) > 8*time.Second {
				t.Errorf("%s during %s: exit %d after %v: %s", sig, args[0], got, time.Since(start), stderr.String())
			}
			if d := readReport(t, path); d.Complete || len(d.Errors) != 1 || d.Errors[0].Exit != code {
				t.Errorf("%s: report %+v", sig, d.Errors)
			}
			if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) > 0 {
				t.Errorf("%s: left %q, %v", sig, names, err)
			}
		}
	}
}

func TestDoctor(t *testing.T) {
	out := mustRun(t, "doctor")
	for _, want := range []string{"memlock ", "nofile ", "shm ", "huge pages ", "inproc     yes\n", "ucx        no: ", "mpi        no: ", "cuda       no: "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	schema, err := os.ReadFile(root("docs", "json-schema", "sluice.doctor-1.json"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.json")
	mustRun(t, "doctor", "--json", path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{string(text), mustRun(t, "doctor", "--json", "-")} {
		for _, err := range jsonschema.Validate(schema, []byte(doc)) {
			t.Error(err)
		}
	}
}

// Help and version need nothing and name only what is built.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {}, {"help"}, {"shuffle", "--help"}, {"table", "-h"}, {"help", "doctor"}} {
		out := mustRun(t, args...)
		for _, later := range []string{"--limit-device", "--spill", "--compress", "--memory", "--plot", "--bind", "sweep", "compare", "completion"} {
			if strings.Contains(out, later) {
				t.Errorf("%q names %s", args, later)
			}
		}
	}
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if out := mustRun(t, args...); !strings.HasPrefix(out, "shuffle-bench "+version+" (") {
			t.Error(out)
		}
	}
}
