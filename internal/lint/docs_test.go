package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestDocuments checks what the Markdown files promise: that what they link to
// in the repository exists, and that the Go code in README.md is code that
// stands in an example, and so compiles and runs.
func TestDocuments(t *testing.T) {
	for _, fault := range checkDocuments(loadRepository(t), os.DirFS(root)) {
		t.Error(fault)
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	goCode = regexp.MustCompile("(?s)```go\n(.*?)```")
)

func checkDocuments(tr *tree, fsys fs.FS) (faults []string) {
	for _, f := range tr.files {
		if path.Ext(f.path) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(f.src, -1) {
			if _, err := fs.Stat(fsys, path.Join(f.dir(), m[1])); err != nil {
				faults = append(faults, fmt.Sprintf("%s: link to %s: there is no such file", f.path, m[1]))
			}
		}
		if f.path != "README.md" {
			continue
		}
		for _, m := range goCode.FindAllStringSubmatch(f.src, -1) {
			if !inExample(tr, m[1]) {
				faults = append(faults, fmt.Sprintf("%s: code that stands in no example_test.go:\n%s", f.path, m[1]))
			}
		}
	}
	return faults
}

// inExample reports whether code stands in an example, indented or not.
func inExample(tr *tree, code string) bool {
	for _, f := range tr.files {
		if path.Base(f.path) == "example_test.go" && strings.Contains(flat(f.src), flat(code)) {
			return true
		}
	}
	return false
}

// flat returns text without indentation and empty lines.
func flat(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestDocumentsCanFail(t *testing.T) {
	const example = "package comm\n\nfunc Example() {\n\ta := 1\n\n\t_ = a\n}\n"
	tests := []struct {
		name, path, text string
		faults           int
	}{
		{"good links", "docs/a.md", "[up](../README.md#x) [web](https://example.com/a.md) [here](#x) [dir](..)", 0},
		{"dead link", "docs/a.md", "[b](b.md)", 1},
		{"good code", "README.md", "```go\na := 1\n_ = a\n```", 0},
		{"other code", "README.md", "```go\na := 2\n```", 1},
		{"code elsewhere", "docs/a.md", "```go\na := 2\n```", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{"README.md": {}, "comm/example_test.go": {Data: []byte(example)}}
			fsys[tt.path] = &fstest.MapFile{Data: []byte(tt.text)}
			tr, err := load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			if faults := checkDocuments(tr, fsys); len(faults) != tt.faults {
				t.Errorf("faults %q, want %d", faults, tt.faults)
			}
		})
	}
}
