package lint

import (
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// frozen are the packages whose exported names embedders compile against. A
// change of their golden files goes with an entry in the CHANGELOG.
var frozen = []string{"buffer", "comm", "comm/inproc", "cuda", "shuffle", "tables"}

func TestAPI(t *testing.T) {
	for _, dir := range frozen {
		t.Run(dir, func(t *testing.T) {
			got, err := exported(filepath.Join(root, filepath.FromSlash(dir)), module+"/"+dir)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "api", strings.ReplaceAll(dir, "/", "_")+".txt"), got)
		})
	}
}

// exported returns the declarations that the package in dir exports, sorted,
// without comments, as a plain build on Linux without cgo sees it.
func exported(dir, importPath string) (string, error) {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled, ctx.BuildTags = "linux", "amd64", false, nil
	pkg, err := ctx.ImportDir(dir, 0)
	if err != nil {
		return "", err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			return "", err
		}
		files = append(files, f)
	}
	d, err := doc.NewFromFiles(fset, files, importPath)
	if err != nil {
		return "", err
	}
	p := apiPrinter{fset: fset}
	p.line("package " + d.Name)
	p.values(d.Consts, d.Vars)
	p.funcs(d.Funcs)
	for _, typ := range d.Types {
		p.node(typ.Decl)
		p.values(typ.Consts, typ.Vars)
		p.funcs(typ.Funcs)
		p.funcs(typ.Methods)
	}
	return p.out.String(), p.err
}

// An apiPrinter writes declarations and keeps the first error.
type apiPrinter struct {
	fset *token.FileSet
	out  strings.Builder
	err  error
}

func (p *apiPrinter) line(s string) { p.out.WriteString(s + "\n") }

func (p *apiPrinter) values(groups ...[]*doc.Value) {
	for _, g := range groups {
		for _, v := range g {
			p.node(v.Decl)
		}
	}
}

func (p *apiPrinter) funcs(funcs []*doc.Func) {
	for _, f := range funcs {
		f.Decl.Body = nil
		p.node(f.Decl)
	}
}

func (p *apiPrinter) node(n ast.Node) {
	p.line("")
	cfg := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 8}
	if err := cfg.Fprint(&p.out, p.fset, n); err != nil && p.err == nil {
		p.err = err
	}
	p.line("")
}

// TestExported shows what counts as API, on a package of its own.
func TestExported(t *testing.T) {
	got, err := exported(filepath.Join("testdata", "exported"), "example.com/exported")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "exported", "golden.txt"), got)
}
