package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// A reporter takes the places that break a rule; line 0 is the whole file.
type reporter func(f *file, line int, format string, args ...any)

// A rule is one property of the whole tree. samples_test.go holds for each
// name sources that break it and sources that do not.
type rule struct {
	name  string
	check func(t *tree, report reporter)
}

var rules = []rule{
	{"edges", checkEdges},
	{"package comment", checkPackageComment},
	{"documented", checkDocumented},
	{"length", checkLength},
	{"places", checkPlaces},
	{"atomics", checkAtomics},
	{"init", checkInit},
	{"sleep", checkSleep},
	{"panic", checkPanic},
	{"environment", checkEnvironment},
	{"quiet", checkQuiet},
	{"words", checkWords},
}

// checkPackageComment wants one package comment, in doc.go (main: main.go).
func checkPackageComment(t *tree, report reporter) {
	for dir, files := range t.packages() {
		home := "doc.go"
		if slices.ContainsFunc(files, func(f *file) bool { return f.isMain() && !f.isTest() }) {
			home = "main.go"
		}
		found := false
		for _, f := range files {
			switch {
			case f.ast.Doc == nil:
			case f.path != dir+"/"+home:
				report(f, f.line(f.ast.Doc.Pos()), "package comment outside %s", home)
			default:
				found = true
				if text := f.ast.Doc.Text(); home == "doc.go" && !strings.HasPrefix(text, "Package "+f.ast.Name.Name+" ") {
					report(f, f.line(f.ast.Doc.Pos()), "package comment does not begin with Package %s", f.ast.Name.Name)
				}
			}
		}
		if !found {
			report(files[0], 0, "package %s has no package comment in %s", dir, home)
		}
	}
}

// checkDocumented wants a comment on what library packages export.
func checkDocumented(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		if f.isTest() || f.isMain() {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d)) && !wellKnown[d.Name.Name]) {
					report(f, f.line(d.Pos()), "exported %s has no comment", d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if name := undocumented(d, s); name != "" {
						report(f, f.line(s.Pos()), "exported %s has no comment", name)
					}
				}
			}
		}
	}
}

// wellKnown are methods that the standard library has explained.
var wellKnown = map[string]bool{"Error": true, "Unwrap": true, "Is": true, "String": true}

// receiver returns the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.IndexListExpr:
			x = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// undocumented returns an exported name of s that neither s nor its group has
// a comment for.
func undocumented(d *ast.GenDecl, s ast.Spec) string {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if d.Doc == nil && s.Doc == nil && s.Name.IsExported() {
			return s.Name.Name
		}
	case *ast.ValueSpec:
		if d.Doc != nil || s.Doc != nil || s.Comment != nil {
			return ""
		}
		for _, n := range s.Names {
			if n.IsExported() {
				return n.Name
			}
		}
	}
	return ""
}

// Lines a file may have.
const (
	maxLines     = 500
	maxTestLines = 700
)

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func checkLength(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		limit := maxLines
		if f.isTest() {
			limit = maxTestLines
		}
		if n := strings.Count(f.src, "\n"); n > limit && !generated.MatchString(f.src) {
			report(f, 0, "%d lines, %d are allowed: one topic a file", n, limit)
		}
	}
}

// places says where an import that gives up what Go guarantees may stand.
var places = map[string][]string{
	"C":      {"buffer", "cuda", "storage", "internal/dl", "comm/ucx", "comm/mpi"},
	"unsafe": {"buffer", "cuda", "storage", "internal/dl", "comm/ucx", "comm/mpi"},
}

func checkPlaces(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		for p, spec := range f.imports {
			if dirs, ok := places[p]; ok && !slices.Contains(dirs, f.dir()) {
				report(f, f.line(spec.Pos()), "import of %q is allowed only in %s", p, strings.Join(dirs, ", "))
			}
		}
	}
}

// checkAtomics bans the functions of sync/atomic: a field with a typed atomic
// cannot be touched in the other way by mistake.
func checkAtomics(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		f.uses("sync/atomic", func(name string, pos token.Pos) {
			switch name {
			case "Bool", "Int32", "Int64", "Uint32", "Uint64", "Uintptr", "Pointer", "Value":
			default:
				report(f, f.line(pos), "atomic.%s: use a typed atomic", name)
			}
		})
	}
}

func checkInit(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				report(f, f.line(fn.Pos()), "init function: two engines live in one process")
			}
		}
	}
}

// checkSleep covers the tests too: what waits for time is flaky or slow.
func checkSleep(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		f.uses("time", func(name string, pos token.Pos) {
			if name == "Sleep" {
				report(f, f.line(pos), "time.Sleep: wait for the event, or use testing/synctest")
			}
		})
	}
}

func checkPanic(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		if f.isTest() || f.dir() == "internal/invariant" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "panic" {
					report(f, f.line(call.Pos()), "panic: return an error, or use internal/invariant")
				}
			}
			return true
		})
	}
}

// mayReadEnvironment are the packages whose task it is; tests may as well.
var mayReadEnvironment = []string{"config", "comm/bootstrap", "internal/faults"}

func checkEnvironment(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		if f.isTest() || strings.HasPrefix(f.path, "cmd/") || slices.Contains(mayReadEnvironment, f.dir()) {
			continue
		}
		for _, p := range []string{"os", "syscall", "golang.org/x/sys/unix"} {
			f.uses(p, func(name string, pos token.Pos) {
				switch name {
				case "Getenv", "LookupEnv", "Environ", "ExpandEnv":
					report(f, f.line(pos), "%s reads the environment", name)
				}
			})
		}
	}
}

// loud are the names, by package, with which a library would speak, end the
// process or take its signals; nil: all names.
var loud = map[string][]string{
	"fmt":       {"Print", "Printf", "Println"},
	"log":       nil,
	"os":        {"Exit", "Stdout", "Stderr", "Stdin"},
	"os/signal": nil,
}

func checkQuiet(t *tree, report reporter) {
	for _, f := range t.goFiles() {
		// A leak check ends the test binary and says why: that is its task.
		if f.isTest() || f.isMain() || f.dir() == "internal/leak" {
			continue
		}
		for p, names := range loud {
			f.uses(p, func(name string, pos token.Pos) {
				if names == nil || slices.Contains(names, name) {
					report(f, f.line(pos), "%s.%s in a library: return an error", p, name)
				}
			})
		}
	}
}

// words are texts that no file may hold. Each pattern is written so that it
// does not match itself.
var words = map[string]*regexp.Regexp{
	"unfinished work":       regexp.MustCompile(`\b(TO[D]O|FIX[M]E|X[X]X)\b`),
	"path of one machine":   regexp.MustCompile(`(^|[^\w.~])/(home|root|Users|wor[k]|far[m])/`),
	"how the text was made": regexp.MustCompile(`(?i)(sub-?a[g]ent|\.librar[y]\b|\b(this|next) sessio[n]\b)`),
	"address of a mirror":   regexp.MustCompile(`(?i)\b(prox[y]\.golang|registr[y]\.npmjs)`),
}

func checkWords(t *tree, report reporter) {
	for _, f := range t.files {
		for i, line := range strings.Split(f.src, "\n") {
			for what, re := range words {
				if m := re.FindString(line); m != "" {
					report(f, i+1, "%s: %q", what, strings.TrimSpace(m))
				}
			}
		}
	}
}
