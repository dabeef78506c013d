package main

import (
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/internal/bench/workload"
)

// maxRanks bounds the ranks of one process, which keep something for each pair.
const maxRanks = 512

// maxRuns bounds the runs, whose samples are all kept.
const maxRuns = 1_000_000

// common are the flags of all workloads.
type common struct {
	comm        string
	ranks       int
	expectRanks int
	plan        workload.Plan
	limit       limitFlag
	json        string
	csv         string
	md          string
	labels      map[string]string
}

func (c *common) register(f *pflag.FlagSet, runs, warmups int) {
	f.SortFlags = false
	f.StringVarP(&c.comm, "comm", "C", "", "transport: inproc, ucx or mpi (default ucx under a launcher of several ranks, else inproc)")
	f.IntVar(&c.ranks, "ranks", 4, "ranks in this process, for inproc")
	f.IntVar(&c.expectRanks, "expect-ranks", 0, "fail unless the job has `n` ranks")
	f.IntVarP(&c.plan.Runs, "runs", "r", runs, "measured runs")
	f.IntVarP(&c.plan.Warmups, "warmups", "w", warmups, "runs before that are not counted")
	f.VarP(&c.limit, "limit-host", "l", "most host memory of a rank: a `size`, a percentage of all memory, or none")
	f.BoolVar(&c.plan.Validate, "validate", true, "check digests of received data against those of inserted data")
	f.StringVar(&c.json, "json", "", "write the whole report as JSON to `file`; - is standard output, %r the id of the run")
	f.StringVar(&c.csv, "csv", "", "write the summary as CSV to `file`")
	f.StringVar(&c.md, "md", "", "write the table as Markdown to `file`")
	f.Var((*labelsFlag)(&c.labels), "label", "note `key=value` in the report; may be repeated")
}

func (c *common) check() error {
	switch {
	case c.ranks < 1 || c.ranks > maxRanks:
		return usage("--ranks is %d: want 1 to %d", c.ranks, maxRanks)
	case c.expectRanks < 0:
		return usage("--expect-ranks is %d: want at least 1", c.expectRanks)
	case c.plan.Runs < 1 || c.plan.Runs > maxRuns:
		return usage("--runs is %d: want 1 to %d", c.plan.Runs, maxRuns)
	case c.plan.Warmups < 0 || c.plan.Warmups > maxRuns:
		return usage("--warmups is %d: want 0 to %d", c.plan.Warmups, maxRuns)
	}
	toStdout := 0
	for _, path := range []string{c.json, c.csv, c.md} {
		if path == "-" {
			toStdout++
		}
	}
	if toStdout > 1 {
		return usage("only one of --json, --csv and --md can be - for standard output")
	}
	return nil
}

// stdoutTaken tells whether a report goes to standard output, where the table
// for people would be in its way.
func (c *common) stdoutTaken() bool { return c.json == "-" || c.csv == "-" || c.md == "-" }

var sizePattern = regexp.MustCompile(`^[0-9.]+(B|[KMGT]i?B)?$`)

// sizeFlag is a number of bytes.
type sizeFlag int64

func (s *sizeFlag) Set(text string) error {
	if !sizePattern.MatchString(text) {
		return fmt.Errorf("want a size such as 64KiB, 1.5MB or 4096")
	}
	n, err := buffer.ParseBytes(text)
	*s = sizeFlag(n)
	return err
}

func (s *sizeFlag) String() string { return buffer.Bytes(int64(*s)).String() }
func (s *sizeFlag) Type() string   { return "size" }

// limitFlag is a limit of memory.
type limitFlag struct{ limit buffer.Limit }

func (l *limitFlag) Set(text string) error {
	if text == "none" {
		l.limit = buffer.Unlimited
		return nil
	}
	if number, ok := strings.CutSuffix(text, "%"); !ok && !sizePattern.MatchString(text) || ok && !sizePattern.MatchString(number) {
		return fmt.Errorf("want a size such as 4GiB, a percentage such as 50%%, or none")
	}
	return l.limit.UnmarshalText([]byte(text))
}

func (l *limitFlag) String() string {
	if l.limit == (buffer.Limit{}) || l.limit == buffer.Unlimited {
		return "none"
	}
	return l.limit.String()
}

func (l *limitFlag) Type() string { return "limit" }

// labelsFlag collects key=value pairs.
type labelsFlag map[string]string

func (l *labelsFlag) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return fmt.Errorf("want key=value")
	}
	if *l == nil {
		*l = labelsFlag{}
	}
	(*l)[key] = value
	return nil
}

func (l *labelsFlag) String() string { return "" }
func (l *labelsFlag) Type() string   { return "key=value" }

// columnsFlag is a list of column names; one that holds a comma is quoted as in
// CSV.
type columnsFlag []string

func (c *columnsFlag) Set(text string) error {
	names, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return fmt.Errorf("want columns separated by commas")
	}
	for _, name := range names {
		if name == "" {
			return fmt.Errorf("a column without name")
		}
	}
	*c = append(*c, names...)
	return nil
}

func (c *columnsFlag) String() string { return strings.Join(*c, ",") }
func (c *columnsFlag) Type() string   { return "columns" }

// ownerFlag names a placement of partitions.
type ownerFlag struct{ owner *workload.Owner }

func (o ownerFlag) Set(text string) error {
	switch v := workload.Owner(text); v {
	case workload.RoundRobin, workload.Contiguous:
		*o.owner = v
		return nil
	}
	return fmt.Errorf("want %s or %s", workload.RoundRobin, workload.Contiguous)
}

func (o ownerFlag) String() string {
	if o.owner == nil {
		return ""
	}
	return string(*o.owner)
}
func (o ownerFlag) Type() string { return "placement" }

// orderFlag names the order in which chunks are sent.
type orderFlag struct{ order *comm.Order }

func (o orderFlag) Set(text string) error {
	if err := o.order.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("want partition, rank or none")
	}
	return nil
}

func (o orderFlag) String() string {
	if o.order == nil {
		return ""
	}
	return o.order.String()
}
func (o orderFlag) Type() string { return "order" }

// spread registers the flags about partitions.
func spread(f *pflag.FlagSet, parts *int, owner *workload.Owner, order *comm.Order) {
	*owner = workload.RoundRobin
	f.IntVarP(parts, "partitions", "o", 4, "partitions per rank")
	f.Var(ownerFlag{owner}, "owner", "placement of partitions: round-robin or contiguous")
	f.Var(orderFlag{order}, "send-order", "order in which chunks leave: partition, rank or none")
}

func checkParts(parts, ranks int) error {
	const most = 1 << 31
	if parts < 1 || parts > most/ranks {
		return usage("--partitions is %d: want 1 to %d for %d ranks", parts, most/ranks, ranks)
	}
	return nil
}
