package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sluice-engine/sluice/internal/bench/stats"
)

// EncodeJSON writes a Document, or another report, indented.
func EncodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// WriteCSV writes a header line and the summary as one record, in base units.
func (d *Document) WriteCSV(w io.Writer) error {
	var names, values []string
	put := func(name string, v int64) {
		names, values = append(names, name), append(values, strconv.FormatInt(v, 10))
	}
	summary := func(name string, s stats.Summary) {
		put(name+"_min", s.Min)
		put(name+"_p50", s.P50)
		put(name+"_p90", s.P90)
		put(name+"_p99", s.P99)
		put(name+"_max", s.Max)
		put(name+"_mean", s.Mean)
		put(name+"_stdev", s.Stdev)
	}
	s := d.Summary
	put("bytes", s.Bytes)
	names, values = append(names, "command"), append(values, d.Command)
	put("ranks", int64(d.Ranks))
	limit := ""
	if l := d.Memory["host"].Limit; l != nil {
		limit = strconv.FormatInt(*l, 10)
	}
	names, values = append(names, "limit_host_bytes"), append(values, limit)
	put("wire_bytes", s.WireBytes)
	summary("elapsed_ns", s.Elapsed)
	summary("rank_elapsed_ns", s.RankElapsed)
	summary("first_partition_ns", s.FirstPartition)
	put("alg_bytes_per_s", s.Alg)
	put("bus_bytes_per_s", s.Bus)
	put("wire_bytes_per_s", s.Wire)
	put("peak_host_bytes", s.Peak.Host)
	names, values = append(names, "skew"), append(values, strconv.FormatFloat(s.Skew, 'f', -1, 64))
	put("wrong", d.Validation.Wrong)
	names, values = append(names, "complete"), append(values, strconv.FormatBool(d.Complete))
	cw := csv.NewWriter(w)
	_ = cw.Write(names) // Error tells of both
	_ = cw.Write(values)
	cw.Flush()
	return cw.Error()
}

// ToFile has write fill the file at path, which appears whole or not at all. What
// is there and not a regular file, such as a device or a pipe, is written to.
func ToFile(path string, write func(io.Writer) error) error {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		name = path
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return fmt.Errorf("report: write %s: %w", path, err)
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if name == path {
		if err != nil {
			return fmt.Errorf("report: write %s: %w", path, err)
		}
		return nil
	}
	if err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		_ = os.Remove(name)
		return fmt.Errorf("report: write %s: %w", path, err)
	}
	return nil
}
