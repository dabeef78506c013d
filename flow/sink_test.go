package flow

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

var writable = []Format{Parquet, Arrow, CSV}

func TestWriterRoundTrip(t *testing.T) {
	for _, format := range writable {
		dir := t.TempDir()
		path := filepath.Join(dir, PartName(7, format))
		w, err := Create(path, format, sampleSchema)
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < 100; from += 40 {
			if err := w.Write(sample(from, 40)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: there before Commit", format)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		w.Discard()
		if got := namesIn(t, dir); !reflect.DeepEqual(got, []string{"part-00007." + string(format)}) {
			t.Errorf("%s: directory holds %q", format, got)
		}
		if got, _ := rowsOf(t, path, 2, Config{}, nil); !slices.Equal(got, rowText(sample(0, 120))) {
			t.Errorf("%s: %d rows read back differ", format, len(got))
		}
	}
}

// Batches may come with dictionaries of their own.
func TestWriterTakesDictionaries(t *testing.T) {
	batches := []arrow.RecordBatch{
		build(t, "k", dict, []string{"a", "null", "b"}), build(t, "k", dict, []string{"z", "a", "null"}),
		build(t, "k", dict, []string{"u", "v", "w", "a"}).NewSlice(2, 4),
	}
	want := []string{`k="a"`, `k=""`, `k="b"`, `k="z"`, `k="a"`, `k=""`, `k="w"`, `k="a"`}
	for _, format := range writable {
		path := filepath.Join(t.TempDir(), "x")
		w, err := Create(path, format, batches[0].Schema())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range batches {
			if err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		if got, _ := rowsOf(t, path, 1, Config{}, nil); !slices.Equal(got, want) {
			t.Errorf("%s: %q", format, got)
		}
	}
}

func TestWriterWithoutRows(t *testing.T) {
	for _, format := range writable {
		path := filepath.Join(t.TempDir(), "empty")
		w, err := Create(path, format, sampleSchema)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		in, err := Open(path, Config{})
		if err != nil || in.Format() != format || in.Schema().Field(1).Name != "name" {
			t.Fatalf("%s: %v", format, err)
		}
		_ = in.Close()
	}
}

func TestWriterDiscard(t *testing.T) {
	for _, format := range writable {
		dir := t.TempDir()
		w, err := Create(filepath.Join(dir, "x"), format, sampleSchema)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(sample(0, 1)); err != nil {
			t.Fatal(err)
		}
		w.Discard()
		w.Discard()
		if got := namesIn(t, dir); len(got) != 0 {
			t.Errorf("%s: left %q", format, got)
		}
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	union := arrow.SparseUnionOf([]arrow.Field{{Name: "x", Type: i64}}, []arrow.UnionTypeCode{0})
	for _, c := range []struct {
		format Format
		typ    arrow.DataType
		want   error
	}{
		{CSV, arrow.ListOf(i64), ErrType}, {Parquet, union, ErrType}, {ArrowStream, i64, errors.ErrUnsupported},
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: c.typ}}, nil)
		if _, err := Create(filepath.Join(dir, "x"), c.format, schema); !errors.Is(err, c.want) {
			t.Errorf("%s of %s: %v", c.format, c.typ, err)
		}
	}
	if _, err := Create(filepath.Join(dir, "no", "x"), CSV, sampleSchema); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if got := namesIn(t, dir); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// A full disk is an error of Write or Commit, whatever the format buffers.
func TestWriterOnFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range writable {
		w, err := Create(filepath.Join(t.TempDir(), "x"), format, sampleSchema)
		if err != nil {
			t.Fatal(err)
		}
		w.buf.Reset(full)
		err = w.Write(sample(0, 1000))
		if err == nil {
			err = w.Commit()
		} else {
			w.Discard()
		}
		if err == nil {
			t.Errorf("%s: no error", format)
		}
	}
	_ = full.Close()
}

func TestMakeDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := MakeDir(dir); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(dir); err != nil {
		t.Errorf("empty directory: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := MakeDir(dir); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("full directory: %v", err)
	}
	if err := MakeDir(filepath.Join(dir, "x")); err == nil || errors.Is(err, ErrNotEmpty) {
		t.Errorf("file: %v", err)
	}
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
