package flow

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// groupRows is the most rows of one row group that a Writer makes; they are
// held in memory until it is full.
const groupRows = 256 << 10

// PartName returns the file name of a partition, such as part-00007.parquet.
func PartName(part int, format Format) string {
	return fmt.Sprintf("part-%05d.%s", part, format)
}

// MakeDir makes an output directory with its parents. One that exists must be
// empty, else the error matches ErrNotEmpty.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("flow: make output directory: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flow: make output directory: %w", err)
	}
	defer func() { _ = d.Close() }() // opened for reading
	if _, err := d.Readdirnames(1); err == nil {
		return fmt.Errorf("flow: make output directory %s: %w", dir, ErrNotEmpty)
	} else if err != io.EOF {
		return fmt.Errorf("flow: make output directory: %w", err)
	}
	return nil
}

// Writer writes batches to one file. The file takes its name only in Commit,
// until then, and after Discard, nothing is there under it. One of the two must
// be called, Discard after Commit does nothing. Not for concurrent use.
type Writer struct {
	path string
	tmp  *os.File // nil once committed or discarded
	buf  *bufio.Writer
	enc  batchEncoder
}

// batchEncoder is one format's writer. close writes the end of the format.
type batchEncoder interface {
	write(batch arrow.RecordBatch) error
	close() error
}

// Create starts a file of the given format, Parquet, Arrow or CSV, and schema
// next to its final place. A type the format cannot hold gives ErrType.
func Create(path string, format Format, schema *arrow.Schema) (*Writer, error) {
	tmp, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("flow: create %s: %w", path, err)
	}
	w := &Writer{path: path, tmp: tmp, buf: bufio.NewWriterSize(tmp, 256<<10)}
	if err := guard(func() (err error) { w.enc, err = newEncoder(w.buf, format, schema); return err }); err != nil {
		w.Discard()
		return nil, fmt.Errorf("flow: create %s: %w", path, err)
	}
	return w, nil
}

func newEncoder(w io.Writer, format Format, schema *arrow.Schema) (batchEncoder, error) {
	switch format {
	case Parquet:
		return newParquetEncoder(w, schema)
	case Arrow:
		return newArrowEncoder(w, schema)
	case CSV:
		return newCSVEncoder(w, schema)
	}
	return nil, fmt.Errorf("%w: format %q cannot be written", errors.ErrUnsupported, format)
}

// Write appends a batch, which it only borrows.
func (w *Writer) Write(batch arrow.RecordBatch) error {
	if err := guard(func() error { return w.enc.write(batch) }); err != nil {
		return fmt.Errorf("flow: write %s: %w", w.path, err)
	}
	return nil
}

// Commit completes the file and gives it its name. On an error nothing is left.
func (w *Writer) Commit() error {
	err := guard(w.enc.close)
	if err == nil {
		err = w.buf.Flush()
	}
	if err == nil {
		err = w.tmp.Close()
	}
	if err == nil {
		err = os.Rename(w.tmp.Name(), w.path)
	}
	if err != nil {
		w.Discard()
		return fmt.Errorf("flow: write %s: %w", w.path, err)
	}
	w.tmp = nil
	return nil
}

// Discard removes what was written.
func (w *Writer) Discard() {
	if w.tmp == nil {
		return
	}
	_ = w.tmp.Close() // the file goes away, and may be closed already
	_ = os.Remove(w.tmp.Name())
	w.tmp = nil
}

type parquetEncoder struct{ w *pqarrow.FileWriter }

func newParquetEncoder(w io.Writer, schema *arrow.Schema) (batchEncoder, error) {
	props := parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithMaxRowGroupLength(groupRows),
		parquet.WithCreatedBy("sluice"))
	arrowProps := pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema(), pqarrow.WithAllocator(memory.DefaultAllocator))
	fw, err := pqarrow.NewFileWriter(schema, w, props, arrowProps)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrType, err)
	}
	return &parquetEncoder{fw}, nil
}

func (e *parquetEncoder) write(batch arrow.RecordBatch) error { return e.w.WriteBuffered(batch) }
func (e *parquetEncoder) close() error                        { return e.w.Close() }

// arrowEncoder writes the values of dictionaries, since a file of that format
// holds one dictionary for a column and batches come with their own.
type arrowEncoder struct {
	w      *ipc.FileWriter
	schema *arrow.Schema
}

func newArrowEncoder(w io.Writer, schema *arrow.Schema) (batchEncoder, error) {
	fields := slices.Clone(schema.Fields())
	for i, f := range fields {
		if dict, ok := f.Type.(*arrow.DictionaryType); ok {
			fields[i].Type = dict.ValueType
		}
	}
	plain := arrow.NewSchema(fields, nil)
	fw, err := ipc.NewFileWriter(w, ipc.WithSchema(plain))
	return &arrowEncoder{fw, plain}, err
}

func (e *arrowEncoder) write(batch arrow.RecordBatch) error {
	columns := slices.Clone(batch.Columns())
	for i, col := range columns {
		if col.DataType().ID() != arrow.DICTIONARY {
			continue
		}
		values, err := compute.CastArray(context.Background(), col, compute.SafeCastOptions(e.schema.Field(i).Type))
		if err != nil {
			return fmt.Errorf("column %q: %w", batch.ColumnName(i), err)
		}
		defer values.Release()
		columns[i] = values
	}
	plain := array.NewRecordBatch(e.schema, columns, batch.NumRows())
	defer plain.Release()
	return e.w.Write(plain)
}

func (e *arrowEncoder) close() error { return e.w.Close() }

type csvEncoder struct{ w io.Writer }

func newCSVEncoder(w io.Writer, schema *arrow.Schema) (batchEncoder, error) {
	for _, f := range schema.Fields() {
		if _, nested := plainType(f.Type).(arrow.NestedType); nested {
			return nil, fmt.Errorf("%w: column %q of type %s in CSV", ErrType, f.Name, f.Type)
		}
	}
	return &csvEncoder{w}, writeHeader(w, schema)
}

func (e *csvEncoder) write(batch arrow.RecordBatch) error { return writeRows(e.w, batch, nil) }
func (e *csvEncoder) close() error                        { return nil }
