package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

const module = "github.com/sluice-engine/sluice"

// A file is one text file of the repository.
type file struct {
	path string // from the module root, with slashes
	src  string
	fset *token.FileSet
	ast  *ast.File // nil unless it is Go
}

func (f *file) dir() string  { return path.Dir(f.path) }
func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }
func (f *file) isMain() bool { return f.ast.Name.Name == "main" }

func (f *file) line(pos token.Pos) int { return f.fset.Position(pos).Line }

// imports returns the imported path of each import with its position.
func (f *file) imports(yield func(importPath string, spec *ast.ImportSpec) bool) {
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && !yield(p, spec) {
			return
		}
	}
}

// uses calls yield for each name that f takes from the package importPath.
func (f *file) uses(importPath string, yield func(name string, pos token.Pos)) {
	local := ""
	for p, spec := range f.imports {
		if p != importPath {
			continue
		}
		local = path.Base(p)
		if spec.Name != nil {
			local = spec.Name.Name
		}
	}
	if local == "" {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				yield(sel.Sel.Name, sel.Pos())
			}
		}
		return true
	})
}

// A tree is the repository: every text file but those that are not ours to
// word (licence, checksums, fuzz corpora) and those git ignores.
type tree struct{ files []*file }

// goFiles returns the Go files, in order of path.
func (t *tree) goFiles() []*file {
	return slices.DeleteFunc(slices.Clone(t.files), func(f *file) bool { return f.ast == nil })
}

// packages returns the Go files by directory.
func (t *tree) packages() map[string][]*file {
	dirs := make(map[string][]*file)
	for _, f := range t.goFiles() {
		dirs[f.dir()] = append(dirs[f.dir()], f)
	}
	return dirs
}

// load reads the module at the root of fsys, without the modules nested in it.
func load(fsys fs.FS) (*tree, error) {
	t := new(tree)
	fset := token.NewFileSet()
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(fsys, p)
		}
		if !d.Type().IsRegular() || p == "LICENSE" || path.Base(p) == "go.sum" {
			return nil
		}
		src, err := fs.ReadFile(fsys, p)
		if err != nil {
			return err
		}
		if !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0 {
			return nil
		}
		f := &file{path: p, src: string(src), fset: fset}
		if strings.HasSuffix(p, ".go") && !strings.Contains(p, "testdata/") {
			f.ast, err = parser.ParseFile(fset, p, src, parser.ParseComments)
			if err != nil {
				return err
			}
		}
		t.files = append(t.files, f)
		return nil
	})
	return t, err
}

// skipDir returns fs.SkipDir for directories that hold nothing of this module.
func skipDir(fsys fs.FS, p string) error {
	switch {
	case p == ".":
		return nil
	case p == ".git", p == "bin", p == "data", strings.HasSuffix(p, "testdata/fuzz"):
		return fs.SkipDir
	}
	if _, err := fs.Stat(fsys, path.Join(p, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// root is the directory of the module.
var root = filepath.Join("..", "..")

// loadRepository loads this repository.
func loadRepository(t *testing.T) *tree {
	t.Helper()
	tr, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// A finding is a place that breaks a rule.
type finding struct {
	path string
	line int // 0: the file as a whole
	text string
}

func (f finding) String() string {
	if f.line == 0 {
		return fmt.Sprintf("%s: %s", f.path, f.text)
	}
	return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.text)
}
