package flow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
)

// Format is how a table is laid out in a file.
type Format string

// The formats, named as the command line names them. ArrowStream is read only.
const (
	Parquet     Format = "parquet"
	Arrow       Format = "arrow"
	ArrowStream Format = "arrow-stream"
	CSV         Format = "csv"
)

// Config holds the numbers of an Input.
type Config struct {
	BatchRows int64 // most rows of one batch; 0: 65,536
}

// Input is one open file. Its methods may be called from several goroutines.
type Input struct {
	path   string
	format Format
	cfg    Config
	src    source
	file   *tracked
}

// source is one format's reader. read yields the rows of one share, all columns
// in cols (indices of the schema's fields) and nothing else; a batch is valid
// until the loop goes on.
type source interface {
	schema() *arrow.Schema
	read(ctx context.Context, rank, size int, cols []int) iter.Seq2[arrow.RecordBatch, error]
}

// Open opens a file and reads its schema. The content decides the format, not
// the name. Errors match ErrUnreadable or ErrDamaged.
func Open(path string, cfg Config) (*Input, error) {
	if cfg.BatchRows <= 0 {
		cfg.BatchRows = 64 << 10
	}
	in := &Input{path: path, cfg: cfg}
	if scheme, _, found := strings.Cut(path, "://"); found {
		return nil, in.fail("open", fmt.Errorf("%w: %s:// inputs are not part of this build", ErrUnreadable, scheme))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, in.fail("open", unreadable(err))
	}
	if err := in.open(f); err != nil {
		_ = f.Close() // the first error is the one to tell
		return nil, in.fail("open", err)
	}
	return in, nil
}

func (in *Input) open(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return unreadable(err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: not a regular file", ErrUnreadable)
	}
	in.file = &tracked{f: f, size: info.Size()}
	head := make([]byte, min(in.file.size, sniffBytes))
	if _, err := in.file.ReadAt(head, 0); err != nil && err != io.EOF {
		return unreadable(err)
	}
	if in.format, err = sniff(head); err != nil {
		return err
	}
	return guard(func() error {
		switch in.format {
		case Parquet:
			in.src, err = openParquet(in.file, in.cfg)
		case Arrow:
			in.src, err = openArrowFile(in.file, in.cfg)
		case ArrowStream:
			in.src, err = openArrowStream(in.file, in.cfg)
		case CSV:
			in.src, err = openCSV(in.file, in.cfg)
		}
		return err
	})
}

const sniffBytes = 4 << 10

// sniff tells the format by the first bytes. Text that starts no known format is CSV.
func sniff(head []byte) (Format, error) {
	switch {
	case len(head) == 0:
		return "", errors.New("the file is empty")
	case bytes.HasPrefix(head, []byte("PAR1")):
		return Parquet, nil
	case bytes.HasPrefix(head, []byte("PARE")):
		return "", errors.New("an encrypted Parquet footer is not supported")
	case bytes.HasPrefix(head, []byte("ARROW1")):
		return Arrow, nil
	case bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff}):
		return ArrowStream, nil
	case bytes.IndexByte(head, 0) >= 0:
		return "", errors.New("neither Parquet, Arrow IPC nor CSV")
	}
	return CSV, nil
}

// Path returns the name the Input was opened with.
func (in *Input) Path() string { return in.path }

// Format returns the format that was found.
func (in *Input) Format() Format { return in.format }

// Schema returns the columns of the file.
func (in *Input) Schema() *arrow.Schema { return in.src.schema() }

// Close closes the file. No Batches loop may be running.
func (in *Input) Close() error {
	if err := in.file.f.Close(); err != nil {
		return in.fail("close", unreadable(err))
	}
	return nil
}

// Share is the part of an Input that one rank reads. The shares of all ranks
// are disjoint and cover every row, each in file order: Parquet is cut at row groups where that is balanced,
// inside them otherwise; Arrow files at equal numbers of record batches and, with
// few of them, inside; an Arrow stream has no index, so each rank reads it whole
// and keeps its slice of every batch; CSV is cut at line ends near equal byte
// ranges.
type Share struct {
	in         *Input
	rank, size int
}

// Share returns what rank (0 … size-1) reads.
func (in *Input) Share(rank, size int) Share { return Share{in, rank, size} }

// Batches yields the rows of the share, only the named columns in the named
// order (nil: all), at most Config.BatchRows rows at a time. A batch is valid
// until the loop goes on; Retain keeps it longer. An error comes once, last.
func (s Share) Batches(ctx context.Context, columns []string) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		cols, err := Columns(s.in.Schema(), columns)
		if err != nil {
			yield(nil, s.in.fail("read", err))
			return
		}
		for batch, err := range s.in.src.read(ctx, s.rank, s.size, cols) {
			if err != nil {
				if ctx.Err() == nil {
					err = s.in.fail("read", err)
				}
				yield(nil, err)
				return
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// Columns returns the field indices of the named columns; nil names mean all.
func Columns(schema *arrow.Schema, names []string) ([]int, error) {
	if names == nil {
		all := make([]int, schema.NumFields())
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	cols := make([]int, len(names))
	for i, name := range names {
		found := schema.FieldIndices(name)
		if len(found) == 0 {
			return nil, fmt.Errorf("%w: %q; there are %s", ErrNoColumn, name, columnList(schema))
		}
		cols[i] = found[0]
	}
	return cols, nil
}

// columnList names the columns of a schema for an error, at most twenty.
func columnList(schema *arrow.Schema) string {
	const most = 20
	var names []string
	for i, f := range schema.Fields() {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", schema.NumFields()-most))
			break
		}
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// project returns the schema of the given field indices.
func project(schema *arrow.Schema, cols []int) *arrow.Schema {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = schema.Field(c)
	}
	return arrow.NewSchema(fields, nil)
}

// fail names the input in err. What is not marked otherwise is damage, unless
// the disk failed underneath the format library.
func (in *Input) fail(act string, err error) error {
	kind := ErrDamaged
	switch {
	case errors.Is(err, ErrNoColumn):
		return fmt.Errorf("flow: %s %s: %w", act, in.path, err)
	case errors.Is(err, ErrUnreadable):
		kind = ErrUnreadable
	case in.file != nil && in.file.failed.Load() != nil:
		kind, err = ErrUnreadable, *in.file.failed.Load()
	}
	return &inputError{act: act, path: in.path, kind: kind, cause: err}
}

// unreadable marks an error of the file system; the path is told elsewhere.
func unreadable(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return &unreadableError{err}
}

type unreadableError struct{ cause error }

func (e *unreadableError) Error() string   { return e.cause.Error() }
func (e *unreadableError) Unwrap() []error { return []error{ErrUnreadable, e.cause} }

// tracked is the open file. It remembers the first failed read, so that a disk
// error is not taken for damage, whatever the format library makes of it.
type tracked struct {
	f      *os.File
	size   int64
	failed atomic.Pointer[error]
}

// ReadAt reads as io.ReaderAt says.
func (t *tracked) ReadAt(p []byte, off int64) (int, error) {
	n, err := t.f.ReadAt(p, off)
	if err != nil && err != io.EOF {
		err = unreadable(err)
		t.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// reader returns an own read position over the whole file.
func (t *tracked) reader() *io.SectionReader { return io.NewSectionReader(t, 0, t.size) }
