package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluice-engine/sluice/flow"
)

var errorLine = regexp.MustCompile(`^\[rank \d+ \S+\] [^\n]+\n$`)

// Every kind of bad input: the right exit code and one line that says what is
// wrong and what to do.
func TestBadInput(t *testing.T) {
	csv := smallTable(t)
	flights := flightsFile(t)
	content, err := os.ReadFile(flights)
	if err != nil {
		t.Fatal(err)
	}
	lists := filepath.Join(t.TempDir(), "lists.arrow")
	w, err := flow.Create(lists, flow.Arrow, arrow.NewSchema([]arrow.Field{
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}, {Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String})}}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	mpi := []string{"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=0"}
	for name, c := range map[string]struct {
		args string
		env  []string
		code int
		say  string
	}{
		"unknown flag":       {args: "shuffle --foo", code: 2, say: "unknown flag: --foo. See shuffle-bench shuffle --help"},
		"unknown command":    {args: "sweep", code: 2, say: `unknown command "sweep"`},
		"argument":           {args: "shuffle x", code: 2, say: `unexpected argument "x"`},
		"bad size":           {args: "shuffle -n 1kib", code: 2, say: "want a size such as 64KiB"},
		"bad size, points":   {args: "shuffle -n 1.2.3MiB", code: 2, say: "parse size"},
		"negative size":      {args: "shuffle -n -5", code: 2, say: "want a size"},
		"no bytes":           {args: "shuffle -n 0", code: 2, say: "--chunk-bytes is 0"},
		"bad limit":          {args: "shuffle -l 5%%", code: 2, say: "want a size such as 4GiB"},
		"bad limit, percent": {args: "shuffle -l 500%", code: 2, say: "500%"},
		"zero partitions":    {args: "shuffle -o 0", code: 2, say: "--partitions is 0"},
		"zero chunks":        {args: "shuffle -p 0", code: 2, say: "--chunks is 0"},
		"zero ranks":         {args: "shuffle --ranks 0", code: 2, say: "--ranks is 0"},
		"zero runs":          {args: "shuffle -r 0", code: 2, say: "--runs is 0"},
		"bad owner":          {args: "shuffle --owner me", code: 2, say: "want round-robin or contiguous"},
		"bad order":          {args: "shuffle --send-order x", code: 2, say: "want partition, rank or none"},
		"bad label":          {args: "shuffle --label x", code: 2, say: "want key=value"},
		"two on stdout":      {args: "shuffle --json - --csv -", code: 2, say: "only one of"},
		"no limit at all":    {args: "shuffle -l 0", code: 2, say: "limit is too small"},
		"too many runs":      {args: "shuffle -r 9223372036854775807 -w 1", code: 2, say: "want 1 to 1000000"},
		"too many ranks":     {args: "shuffle --ranks 100000", code: 2, say: "want 1 to 512"},
		"more than there is": {args: "shuffle -n 900TiB -p 1 -o 1 --ranks 1", code: 2, say: "Exchange less at once"},
		"more than counts":   {args: "shuffle -n 4000000TB -p 4000000000 -o 50000", code: 2, say: "bytes. Exchange less at once"},
		"small limit":        {args: "shuffle -l 1MiB", code: 2, say: "16 chunks of 1048576 bytes take 16777216. Raise --limit-host"},
		"small limit, table": {args: "table --key k -l 1000KiB --input " + csv, code: 2, say: "limit is too small"},
		"bad transport":      {args: "shuffle -C carrier-pigeon", code: 2, say: "want inproc, ucx or mpi"},
		"inproc by launcher": {args: "shuffle -C inproc", env: mpi, code: 2, say: "launcher Open MPI started 2 processes"},
		"no input":           {args: "table --key k", code: 2, say: "--input FILE"},
		"no key":             {args: "table --input " + csv, code: 2, say: "--key COLUMN"},
		"missing column":     {args: "table --key nobody --input " + csv, code: 2, say: `no such column: "nobody"; there are k, v`},
		"missing aggregate":  {args: "table --key k --agg sum(nobody) --input " + csv, code: 2, say: `no such column: "nobody"`},
		"bad aggregate":      {args: "table --key k --agg avg(v) --input " + csv, code: 2, say: "want count"},
		"sum of text":        {args: "table --key v --agg sum(k) --input " + csv, code: 2, say: "unsupported type: sum(k)"},
		"list key":           {args: "table --key l --input " + lists, code: 2, say: `"l"`},
		"struct key":         {args: "table --key s --input " + lists, code: 2, say: `"s"`},
		"bad format":         {args: "table --key k --format xml --output x --input " + csv, code: 2, say: "want parquet, arrow or csv"},
		"select, no output":  {args: "table --key k --select v --input " + csv, code: 2, say: "--output"},
		"full output":        {args: "table --key k --output " + filepath.Dir(csv) + " --input " + csv, code: 2, say: "directory is not empty. Give"},
		"missing input":      {args: "table --key k --input /nonexistent/x.csv", code: 4, say: "no such file or directory. Check"},
		"directory":          {args: "table --key k --input " + filepath.Dir(csv), code: 4, say: "not a regular file"},
		"remote input":       {args: "table --key k --input s3://bucket/key", code: 4, say: "s3:// inputs are not part of this build"},
		"ucx":                {args: "shuffle -C ucx", code: 4, say: "start transport ucx: not built: this build has no UCX driver. Use -C inproc"},
		"mpi":                {args: "shuffle -C mpi", code: 4, say: "not built"},
		"ucx by launcher":    {args: "shuffle", env: mpi, code: 4, say: "start transport ucx: not built"},
		"bad launcher":       {args: "shuffle", env: []string{"PMI_SIZE=many"}, code: 4, say: `PMI_SIZE="many"`},
		"two launchers":      {args: "shuffle", env: append([]string{"PMI_SIZE=3", "PMI_RANK=0"}, mpi...), code: 4, say: "Open MPI says rank 0 of 2, PMI says rank 0 of 3"},
		"expected ranks":     {args: "shuffle --expect-ranks 3 --ranks 2", code: 4, say: "there are 2, 3 are expected (no launcher, transport inproc)"},
		"empty input":        {args: "table --key k --input " + writeFile(t, "x", ""), code: 1, say: "damaged: the file is empty. Get"},
		"garbage":            {args: "table --key k --input " + writeFile(t, "x", "\x00\x01\x02"), code: 1, say: "neither Parquet, Arrow IPC nor CSV"},
		"cut Parquet":        {args: "table --key origin --input " + writeFile(t, "x", string(content[:len(content)/2])), code: 1, say: "damaged"},
		"hole in Parquet":    {args: "table --key origin --input " + writeFile(t, "x", string(content[:4])+strings.Repeat("\xff", 1<<20)+string(content[4+1<<20:])), code: 1, say: "damaged: row group 0"},
		"bad CSV row":        {args: "table --key k --input " + writeFile(t, "x", "k,v\na,1\nb\n"), code: 1, say: "line 3: wrong number of fields"},
		"other columns":      {args: "table --key k --input " + csv + " --input " + writeFile(t, "x", "k,v\n1,2\n"), code: 1, say: "its columns differ"},
		"sum overflows":      {args: "table --key k --agg sum(v) --input " + writeFile(t, "x", "k,v\n1,9223372036854775807\n1,9223372036854775807\n"), code: 1, say: "overflow"},
		"out of memory":      {args: "shuffle -l 17MiB -r 1 -w 0", code: 1, say: "Raise --limit-host"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			json := filepath.Join(t.TempDir(), "report.json")
			args := strings.Fields(c.args)
			if strings.HasPrefix(c.args, "shuffle") || strings.HasPrefix(c.args, "table") {
				args = append(args, "--json", json)
			}
			if name == "two on stdout" {
				args = args[:len(args)-2]
			}
			cmd := command(t, args...)
			cmd.Env = append(cmd.Env, c.env...)
			o := finish(t, cmd)
			if o.code != c.code || !errorLine.MatchString(o.stderr) || !strings.Contains(o.stderr, c.say) {
				t.Errorf("%s: exit %d, want %d and %q: %s", c.args, o.code, c.code, c.say, o.stderr)
			}
			if _, err := os.Stat(json); err != nil {
				return // the flags could not be read
			}
			d := readReport(t, json)
			if d.Complete || len(d.Errors) != 1 || d.Errors[0].Exit != c.code || !strings.Contains(o.stderr, d.Errors[0].Message) {
				t.Errorf("report: complete %v, errors %+v", d.Complete, d.Errors)
			}
		})
	}
}

// What all ranks find alike is told by rank 0; the others keep silent.
func TestOtherRanksAreSilent(t *testing.T) {
	cmd := command(t, "shuffle")
	cmd.Env = append(cmd.Env, "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1")
	if o := finish(t, cmd); o.code != 4 || o.stderr != "" || o.stdout != "" {
		t.Errorf("%+v", o)
	}
}

// A failed job leaves no output behind.
func TestFailedOutputIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	bad := writeFile(t, "x.csv", "k,v\n"+strings.Repeat("a,1\n", 200_000)+"b,x\n")
	o := finish(t, command(t, "table", "--key", "k", "--output", dir, "--input", smallTable(t), "--input", bad))
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if o.code != 1 || err != nil || len(names) != 0 {
		t.Errorf("exit %d, left %q: %s", o.code, names, o.stderr)
	}
}
