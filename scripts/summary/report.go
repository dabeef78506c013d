package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

const module = "github.com/sluice-engine/sluice"

// optional are the features whose absence a machine may be excused for.
var optional = []string{"gpu", "slurm", "pip", "maven"}

var errFailed = errors.New("FAIL")

// report prints go test's lines, then the parts, then what ran of each
// package and what was skipped of each feature. It returns errFailed, joined
// with the reasons, unless all is well.
func report(log io.Reader, out io.Writer) error {
	var records []record
	for dec := json.NewDecoder(log); ; {
		var r record
		if err := dec.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		records = append(records, r)
	}
	s := newSheet(records)
	if err := s.print(out); err != nil {
		return err
	}
	if s.tests == 0 {
		s.faults = append(s.faults, errors.New("no test ran"))
	}
	if len(s.faults) > 0 {
		return errors.Join(append([]error{errFailed}, s.faults...)...)
	}
	_, err := fmt.Fprintf(out, "PASS: %d tests in %d parts\n", s.tests, len(s.parts))
	return err
}

// A sheet is the log in the form in which it is printed.
type sheet struct {
	lines  []string                  // of go test, for packages with tests
	parts  []record                  // in order
	ran    map[string]map[string]int // tests by package and part
	skips  map[string]skipped        // by feature
	tests  int
	faults []error
}

type skipped struct {
	tests  int
	reason string // of one of them
}

func newSheet(records []record) *sheet {
	s := &sheet{ran: make(map[string]map[string]int), skips: make(map[string]skipped)}
	for _, r := range records {
		switch {
		case r.Package == "":
			s.parts = append(s.parts, r)
			if r.Status != "ok" {
				s.faults = append(s.faults, fmt.Errorf("part %s: %s", r.Part, r.Status))
			}
		case r.Test != "":
			s.skip(r)
		case r.Passed+r.Failed > 0:
			s.pkg(r)
		}
	}
	return s
}

func (s *sheet) pkg(r record) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.Package, module), "/")
	if s.ran[name] == nil {
		s.ran[name] = make(map[string]int)
	}
	s.ran[name][r.Part] += r.Passed + r.Failed
	s.tests += r.Passed + r.Failed
	s.lines = append(s.lines, r.Line)
	if r.Failed > 0 {
		s.faults = append(s.faults, fmt.Errorf("part %s: %s: %d tests failed", r.Part, name, r.Failed))
	}
}

func (s *sheet) skip(r record) {
	feature, reason, ok := strings.Cut(r.Reason, ":")
	if !ok || strings.ContainsAny(feature, " \t") {
		feature, reason = "unnamed", r.Reason
	}
	k, known := s.skips[feature]
	if !known {
		k.reason = strings.TrimSpace(reason)
	}
	k.tests++
	s.skips[feature] = k
	if !slices.Contains(optional, feature) {
		s.faults = append(s.faults, fmt.Errorf("part %s: %s skipped: %q is not optional", r.Part, r.Test, r.Reason))
	}
}

func (s *sheet) print(out io.Writer) error {
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(line + "\n")
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // into memory
	}
	row("part", "result", "time", "limit")
	for _, p := range s.parts {
		row(p.Part, p.Status, fmt.Sprintf("%.0f s", p.Seconds), fmt.Sprintf("%.0f s", p.Limit))
	}
	row()
	columns := s.columns()
	row(append([]string{"feature"}, append(columns, "skipped")...)...)
	for _, name := range slices.Sorted(maps.Keys(s.ran)) {
		row(append(append([]string{name}, counts(s.ran[name], columns)...), "-")...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.skips)) {
		k := s.skips[name]
		row(append(append([]string{name}, counts(nil, columns)...), fmt.Sprintf("%d (%s)", k.tests, k.reason))...)
	}
	_ = w.Flush() // into memory
	_, err := io.WriteString(out, b.String())
	return err
}

// columns returns the parts that ran tests, in the order of the run.
func (s *sheet) columns() []string {
	var names []string
	for _, p := range s.parts {
		for _, ran := range s.ran {
			if ran[p.Part] > 0 {
				names = append(names, p.Part)
				break
			}
		}
	}
	return names
}

func counts(ran map[string]int, columns []string) []string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = "-"
		if n := ran[c]; n > 0 {
			cells[i] = strconv.Itoa(n)
		}
	}
	return cells
}
