package flow

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// arrowFile reads the Arrow IPC file format, which has an index of its batches.
type arrowFile struct {
	file    *tracked
	cfg     Config
	sch     *arrow.Schema
	batches int
}

func openArrowFile(f *tracked, cfg Config) (source, error) {
	if err := checkFileSchema(f); err != nil {
		return nil, err
	}
	src := &arrowFile{file: f, cfg: cfg}
	r, err := src.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only forgets what it read
	src.sch, src.batches = r.Schema(), r.NumRecords()
	if int64(src.batches) > f.size {
		return nil, fmt.Errorf("the footer claims %d record batches", src.batches)
	}
	return src, nil
}

func (src *arrowFile) open() (*ipc.FileReader, error) {
	return ipc.NewFileReader(src.file.reader(), ipcOptions(src.file)...)
}

// ipcOptions: no message can be larger than the file.
func ipcOptions(f *tracked) []ipc.Option {
	return []ipc.Option{ipc.WithBodySizeLimit(f.size), ipc.WithMetadataSizeLimit(f.size), ipc.WithAllocator(allocatorFor(f.size))}
}

func (src *arrowFile) schema() *arrow.Schema { return src.sch }

func (src *arrowFile) read(ctx context.Context, rank, size int, cols []int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var r *ipc.FileReader
		if err := guard(func() (err error) { r, err = src.open(); return err }); err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = r.Close() }() // only forgets what it read
		for _, sp := range cutUnits(src.batches, rank, size) {
			var batch arrow.RecordBatch
			err := guard(func() (err error) { batch, err = r.RecordBatchAt(sp.unit); return err })
			if err != nil {
				yield(nil, fmt.Errorf("record batch %d: %w", sp.unit, err))
				return
			}
			lo, hi := sp.rowsOf(batch.NumRows(), size)
			more := yieldRows(ctx, batch, lo, hi, cols, src.cfg.BatchRows, yield)
			batch.Release()
			if !more {
				return
			}
		}
	}
}

// arrowStream reads the Arrow IPC stream format from its start.
type arrowStream struct {
	file *tracked
	cfg  Config
	sch  *arrow.Schema
}

func openArrowStream(f *tracked, cfg Config) (source, error) {
	if err := checkStreamSchema(f.reader()); err != nil {
		return nil, err
	}
	src := &arrowStream{file: f, cfg: cfg}
	r, err := src.open()
	if err != nil {
		return nil, err
	}
	src.sch = r.Schema()
	r.Release()
	return src, nil
}

// open makes a reader in two steps: ipc.NewReader would forget the limits.
func (src *arrowStream) open() (*ipc.Reader, error) {
	opts := ipcOptions(src.file)
	return ipc.NewReaderFromMessageReader(ipc.NewMessageReader(src.file.reader(), opts...), opts...)
}

func (src *arrowStream) schema() *arrow.Schema { return src.sch }

func (src *arrowStream) read(ctx context.Context, rank, size int, cols []int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var r *ipc.Reader
		if err := guard(func() (err error) { r, err = src.open(); return err }); err != nil {
			yield(nil, err)
			return
		}
		defer r.Release()
		for i := 0; ; i++ {
			var batch arrow.RecordBatch
			err := guard(func() (err error) { batch, err = r.Read(); return err })
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("record batch %d: %w", i, err))
				return
			}
			n, slot := batch.NumRows(), (rank+i)%size // in turn, or few rows a batch would all go to one rank
			if !yieldRows(ctx, batch, fraction(n, slot, size), fraction(n, slot+1, size), cols, src.cfg.BatchRows, yield) {
				return
			}
		}
	}
}

// yieldRows yields rows [lo, hi) of a decoded batch, the columns in cols, in
// pieces of at most most rows. The offsets in it come from outside, so they are
// checked before anyone follows them. false ends the loop.
func yieldRows(ctx context.Context, batch arrow.RecordBatch, lo, hi int64, cols []int, most int64,
	yield func(arrow.RecordBatch, error) bool) bool {
	arrays := make([]arrow.Array, len(cols))
	for i, c := range cols {
		arrays[i] = batch.Column(c)
		if err := guard(func() error { return array.ValidateFull(arrays[i]) }); err != nil {
			yield(nil, fmt.Errorf("column %q: %w", batch.ColumnName(c), err))
			return false
		}
	}
	picked := array.NewRecordBatch(project(batch.Schema(), cols), arrays, batch.NumRows())
	defer picked.Release()
	for ; lo < hi; lo += most {
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return false
		}
		piece := picked.NewSlice(lo, min(hi, lo+most))
		more := yield(piece, nil)
		piece.Release()
		if !more {
			return false
		}
	}
	return true
}
