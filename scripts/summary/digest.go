package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// An event is what go test -json writes; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A progress is what is known of a package while its tests run.
type progress struct {
	record
	output []event         // in order
	good   map[string]bool // tests that passed or were skipped
	skips  []record
}

// digest reads the events of one go test, prints to out what go test itself
// would, and returns the records of the packages.
func digest(events io.Reader, out io.Writer, part string) ([]record, error) {
	var records []record
	packages := make(map[string]*progress)
	for dec := json.NewDecoder(events); ; {
		var e event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return records, nil
		} else if err != nil {
			return records, fmt.Errorf("read events: %w", err)
		}
		if e.Action == "build-output" {
			if _, err := io.WriteString(out, e.Output); err != nil {
				return records, err
			}
			continue
		}
		p := packages[e.Package]
		if p == nil {
			p = &progress{record: record{Part: part, Package: e.Package}, good: make(map[string]bool)}
			packages[e.Package] = p
		}
		if !p.take(e) {
			continue
		}
		if _, err := io.WriteString(out, p.text(e.Action == "fail")); err != nil {
			return records, err
		}
		records = append(append(records, p.record), p.skips...)
		delete(packages, e.Package)
	}
}

// take notes an event and reports whether the package is done with it.
func (p *progress) take(e event) (done bool) {
	switch {
	case e.Action == "output":
		p.output = append(p.output, e)
		if e.Test == "" && summaryLine.MatchString(e.Output) {
			p.Line = strings.TrimSpace(e.Output)
		}
		return false
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
		return false
	case e.Test == "":
		return true
	case e.Action == "pass":
		p.Passed++
	case e.Action == "fail":
		p.Failed++
		return false
	case e.Action == "skip":
		p.skips = append(p.skips, record{
			Part: p.Part, Package: p.Package, Test: e.Test, Reason: p.reason(e.Test),
		})
	}
	p.good[e.Test] = true
	return false
}

var (
	// summaryLine is go test's line for a whole package.
	summaryLine = regexp.MustCompile(`^(ok  |FAIL|\?   )\t`)
	// logLine is what t.Log and t.Skip write.
	logLine = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)\n$`)
)

// reason returns the text that a skipped test gave last.
func (p *progress) reason(test string) string {
	for i := len(p.output) - 1; i >= 0; i-- {
		if m := logLine.FindStringSubmatch(p.output[i].Output); m != nil && p.output[i].Test == test {
			return m[1]
		}
	}
	return ""
}

// text is what go test prints for the package without -v: its line, and if
// it failed all that the tests said which did not end well.
func (p *progress) text(failed bool) string {
	if !failed {
		return p.Line + "\n"
	}
	var out strings.Builder
	for _, e := range p.output {
		if !p.good[e.Test] && !strings.HasPrefix(e.Output, "=== ") {
			out.WriteString(e.Output)
		}
	}
	return out.String()
}
