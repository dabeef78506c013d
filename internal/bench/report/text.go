package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bytes returns a size for people, such as 1.5 MiB.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, u := float64(n), 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + " " + units[u]
}

// Grouped returns a number with commas between thousands.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// columns is the layout of the table: the size comes first, so that tools made
// for other benchmarks find it.
var columns = []string{"bytes", "limit", "min_ms", "med_ms", "p99_ms", "max_ms", "alg_GB/s", "bus_GB/s", "wire_GB/s", "peak_GiB", "skew", "#wrong"}

func (d *Document) cells() []string {
	s := d.Summary
	ms := func(ns int64) string { return strconv.FormatFloat(float64(ns)/1e6, 'f', 3, 64) }
	gb := func(rate int64) string { return strconv.FormatFloat(float64(rate)/1e9, 'f', 3, 64) }
	return []string{
		strconv.FormatInt(s.Bytes, 10), limitText(d.Memory["host"].Limit),
		ms(s.Elapsed.Min), ms(s.Elapsed.P50), ms(s.Elapsed.P99), ms(s.Elapsed.Max),
		gb(s.Alg), gb(s.Bus), gb(s.Wire),
		strconv.FormatFloat(float64(s.Peak.Host)/(1<<30), 'f', 3, 64), strconv.FormatFloat(s.Skew, 'f', 2, 64),
		strconv.FormatInt(d.Validation.Wrong, 10),
	}
}

func limitText(limit *int64) string {
	switch {
	case limit == nil:
		return "none"
	case *limit%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", *limit>>20)
	}
	return fmt.Sprintf("%dB", *limit)
}

// WriteHeader writes the lines that say what is measured, before it is.
func (d *Document) WriteHeader(w io.Writer, perRank string, runs, warmups int) error {
	onOff := "off"
	if d.Validation.Enabled {
		onOff = "on"
	}
	hosts := "host"
	if len(d.Run.Host) != 1 {
		hosts = "hosts"
	}
	_, err := fmt.Fprintf(w, "# sluice shuffle-bench %s (%s)  %d %s x %d ranks  comm=%s  hash=xxh3  validate=%s\n# per rank: %s   limit=%s   warmup=%d runs=%d\n",
		d.Run.Versions["sluice"], d.Run.Versions["commit"], len(d.Run.Host), hosts, d.Ranks/max(1, len(d.Run.Host)),
		strings.Join(d.Run.Transports, "+"), onOff, perRank, limitText(d.Memory["host"].Limit), warmups, runs)
	return err
}

// WriteText writes the table, the groups if there are any, and the closing line.
func (d *Document) WriteText(w io.Writer, jsonPath string) error {
	var out strings.Builder
	writeAligned(&out, [][]string{columns, d.cells()})
	if d.Table != nil {
		d.Table.write(&out)
	}
	out.WriteString(d.closing(jsonPath))
	_, err := io.WriteString(w, out.String())
	return err
}

// closing tells the slowest rank, what was waited for, and where more is told.
func (d *Document) closing(jsonPath string) string {
	var wait, elapsed int64
	for _, x := range d.Samples {
		if !x.Warmup && x.Rank == d.Summary.Slowest {
			wait, elapsed = wait+x.Wait, elapsed+x.Elapsed
		}
	}
	host := ""
	if len(d.Run.Host) > 0 {
		host = " (" + d.Run.Host[0] + ")"
	}
	line := fmt.Sprintf("# slowest rank %d%s: %.3f ms, %d %% waiting", d.Summary.Slowest, host, float64(d.Summary.Elapsed.Max)/1e6, 100*wait/max(1, elapsed))
	fallbacks := "none"
	if len(d.Fallbacks) > 0 {
		var list []string
		for _, f := range d.Fallbacks {
			list = append(list, f.What+": "+f.Reason)
		}
		fallbacks = strings.Join(list, "; ")
	}
	line += "    fallbacks: " + fallbacks
	if jsonPath != "" {
		line += "    report: " + jsonPath
	}
	return line + "\n"
}

func (t *Table) write(out *strings.Builder) {
	fmt.Fprintf(out, "# %s rows, %s groups by %s\n", Grouped(t.RowsIn), Grouped(t.Groups), strings.Join(t.Keys, ", "))
	if len(t.Top) == 0 {
		return
	}
	rows := [][]string{t.Columns}
	for _, g := range t.Top {
		var cells []string
		for _, k := range g.Key {
			cells = append(cells, valueText(k))
		}
		for _, name := range t.Columns[len(g.Key):] {
			cells = append(cells, valueText(g.Values[name]))
		}
		rows = append(rows, cells)
	}
	writeAligned(out, rows)
}

// writeAligned writes rows of equal length, all columns aligned to the right,
// the first row marked as a head.
func writeAligned(out *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for r, row := range rows {
		mark := "  "
		if r == 0 {
			mark = "# "
		}
		for i, cell := range row {
			out.WriteString(mark)
			out.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
			out.WriteString(cell)
			mark = "  "
		}
		out.WriteByte('\n')
	}
}

// valueText shows a group's value on one line.
func valueText(v any) string {
	if v == nil {
		return "null"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, fmt.Sprint(v))
}

// WriteMarkdown writes the table in Markdown.
func (d *Document) WriteMarkdown(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s |\n|%s\n| %s |\n", strings.Join(columns, " | "), strings.Repeat(" ---: |", len(columns)), strings.Join(d.cells(), " | "))
	_, err := io.WriteString(w, out.String())
	return err
}
