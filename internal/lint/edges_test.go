package lint

import (
	"slices"
	"strconv"
	"strings"
)

// A row says what the non-test files of one package may import beyond the
// standard library, and what its tests may import on top.
type row struct {
	own   []string // packages of this module
	ext   []string // modules beyond lean; {"*"}: any
	tests []string // packages of this module, for tests
}

// edges is the table of layers: imports point down only. A package that is not
// in it may not exist, and a new edge is a decision to be recorded in
// docs/decisions.
var edges = map[string]row{
	"cuda":   {},
	"buffer": {own: []string{"cuda"}},

	"comm":          {own: []string{"buffer", "cuda"}, tests: []string{"comm/inproc", "comm/commtest"}},
	"comm/inproc":   {own: []string{"comm", "buffer", "cuda"}, tests: []string{"comm/commtest"}},
	"comm/commtest": {own: []string{"comm", "buffer"}, tests: []string{"comm/inproc"}},

	"shuffle": {own: []string{"comm", "buffer", "cuda"}, tests: []string{"comm/inproc", "comm/commtest"}},
	"tables":  {own: []string{"buffer"}, ext: arrow},
	"flow": {
		own:   []string{"shuffle", "tables", "comm", "buffer", "cuda"},
		ext:   arrow,
		tests: []string{"comm/inproc"},
	},

	// The command line, and its parts that have tests of their own.
	"cmd/shuffle-bench": {
		own: []string{
			"flow", "shuffle", "tables", "comm", "comm/inproc", "buffer", "cuda", "internal/faults",
			"internal/bench/machine", "internal/bench/report", "internal/bench/workload",
		},
		ext:   []string{"*"},
		tests: []string{"internal/bench/jsonschema"},
	},
	"internal/bench/workload": {
		own: []string{"flow", "shuffle", "tables", "comm", "comm/inproc", "buffer", "internal/faults"},
		ext: arrow,
	},
	"internal/bench/machine":    {own: []string{"cuda", "internal/bench/report"}},
	"internal/bench/report":     {own: []string{"internal/bench/stats"}, tests: []string{"internal/bench/jsonschema"}},
	"internal/bench/stats":      {},
	"internal/bench/jsonschema": {},
	"internal/faults":           {},
	"scripts/summary":           {},

	"internal/fifo":      {},
	"internal/invariant": {},
	"internal/leak":      {ext: []string{"go.uber.org/goleak"}},
	"internal/lint":      {},
	"internal/script":    {},
}

var (
	// everywhere may be imported by every package, inTests by every test.
	everywhere = []string{"internal/fifo", "internal/invariant"}
	inTests    = []string{"internal/leak", "internal/script"}

	// lean are the modules that every package may take, since an embedder
	// pays for each further one. Tests may take any.
	lean = []string{
		"github.com/klauspost/compress",
		"github.com/zeebo/xxh3",
		"go.uber.org/zap",
		"golang.org/x/sync",
		"golang.org/x/sys",
	}
	arrow = []string{"github.com/apache/arrow-go"}
)

// checkEdges compares the imports of every file with the table.
func checkEdges(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		r, ok := edges[f.dir()]
		if !ok {
			report(f, 0, "package %s is not in the table of edges", f.dir())
			continue
		}
		for p, spec := range f.imports {
			if spec.Name != nil && spec.Name.Name == "." {
				report(f, f.line(spec.Pos()), "dot import of %s", p)
			}
			if !r.allows(p, f) {
				report(f, f.line(spec.Pos()), "%s may not import %s", f.dir(), p)
			}
		}
	}
}

// allows reports whether f, a file of the package r speaks of, may import p.
func (r row) allows(p string, f *file) bool {
	own, isOwn := strings.CutPrefix(p, module)
	if !isOwn {
		// The standard library's paths have no dot in their first element.
		first, _, _ := strings.Cut(p, "/")
		return !strings.Contains(first, ".") || f.isTest() || r.allowsModule(p)
	}
	own = strings.TrimPrefix(own, "/")
	switch {
	case slices.Contains(r.own, own), slices.Contains(everywhere, own):
		return true
	case f.isTest():
		// own == f.dir(): the external test of a package imports it.
		return own == f.dir() || slices.Contains(r.tests, own) || slices.Contains(inTests, own)
	}
	return false
}

func (r row) allowsModule(p string) bool {
	if slices.Equal(r.ext, []string{"*"}) {
		return true
	}
	return slices.ContainsFunc(slices.Concat(lean, r.ext), func(m string) bool {
		return p == m || strings.HasPrefix(p, m+"/")
	})
}

// depguard writes the table as the rules of the linter of that name, which
// golangci-lint runs inside editors; it knows nothing of tests.
func depguard() string {
	var dirs []string
	for dir := range edges {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	var out strings.Builder
	for _, dir := range dirs {
		out.WriteString("        " + dir + ":\n")
		out.WriteString("          list-mode: lax\n")
		out.WriteString("          files: [" + strconv.Quote("**/"+dir+"/*.go") + `, "!$test"]` + "\n")
		out.WriteString("          allow:\n")
		for _, p := range slices.Concat(edges[dir].own, everywhere) {
			out.WriteString("            - " + module + "/" + p + "$\n")
		}
		out.WriteString("          deny:\n")
		out.WriteString("            - pkg: " + module + "\n")
		out.WriteString("              desc: not an edge of internal/lint/edges_test.go\n")
	}
	return out.String()
}
