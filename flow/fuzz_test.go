package flow

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpen reads any bytes as a table: rows or ErrDamaged, never a panic.
func FuzzOpen(f *testing.F) {
	for _, format := range readable {
		content, err := os.ReadFile(writeSample(f, format, 10, 5))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	path := filepath.Join(f.TempDir(), "input")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := readAll(path, 2); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}

// FuzzSchemaCheck walks any bytes without leaving them.
func FuzzSchemaCheck(f *testing.F) {
	content, err := os.ReadFile(writeSample(f, ArrowStream, 1, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := checkStreamSchema(bytes.NewReader(content)); err != nil && !errors.Is(err, errSchema) {
			t.Fatal(err)
		}
	})
}
