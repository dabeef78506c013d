package lint

import (
	"flag"
	"fmt"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "rewrite the files that are written from the code")

// run returns what the rule finds in t.
func (r rule) run(t *tree) (findings []finding) {
	r.check(t, func(f *file, line int, format string, args ...any) {
		findings = append(findings, finding{f.path, line, fmt.Sprintf(format, args...)})
	})
	return findings
}

func TestRepository(t *testing.T) {
	tr := loadRepository(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range r.run(tr) {
				t.Error(f)
			}
		})
	}
}

// TestRulesCanFail shows that each rule finds what it bans, and no more.
func TestRulesCanFail(t *testing.T) {
	if len(samples) != len(rules) {
		t.Errorf("samples for %d rules, there are %d", len(samples), len(rules))
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if len(samples[r.name].bad) == 0 {
				t.Error("no sample that breaks the rule")
			}
			for _, s := range samples[r.name].bad {
				if len(r.run(loadSample(t, s))) == 0 {
					t.Errorf("not found: %s: %s", s.path, s.src)
				}
			}
			for _, s := range samples[r.name].good {
				for _, f := range r.run(loadSample(t, s)) {
					t.Errorf("wrongly found: %s", f)
				}
			}
		})
	}
}

func loadSample(t *testing.T, s sample) *tree {
	t.Helper()
	tr, err := load(fstest.MapFS{s.path: {Data: []byte(s.src)}})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestLoad shows what the walk leaves out.
func TestLoad(t *testing.T) {
	tr, err := load(fstest.MapFS{
		"go.mod":                       {},
		"go.sum":                       {},
		"LICENSE":                      {},
		"README.md":                    {},
		".ci/run":                      {},
		".git/config":                  {},
		"bin/x.md":                     {},
		"data/x.md":                    {},
		"comm/a.go":                    {Data: []byte("package comm")},
		"comm/testdata/a.go":           {Data: []byte("not Go")},
		"comm/testdata/fuzz/FuzzA/one": {},
		"comm/binary":                  {Data: []byte{0}},
		"tools/go.mod":                 {},
		"tools/a.go":                   {Data: []byte("package tools")},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range tr.files {
		got = append(got, f.path)
	}
	want := []string{".ci/run", "README.md", "comm/a.go", "comm/testdata/a.go", "go.mod"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("loaded %v, want %v", got, want)
	}
	if goFiles := tr.goFiles(); len(goFiles) != 1 || goFiles[0].path != "comm/a.go" {
		t.Errorf("Go files %v", goFiles)
	}
}
