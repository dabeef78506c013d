package flow

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// parquetSource reads a Parquet file. The footer is parsed once; every share
// opens its own reader over it.
type parquetSource struct {
	file *tracked
	cfg  Config
	sch  *arrow.Schema
	meta *metadata.FileMetaData
	rows []int64 // per row group
}

func openParquet(f *tracked, cfg Config) (source, error) {
	src := &parquetSource{file: f, cfg: cfg}
	pf, err := src.open(nil)
	if err != nil {
		return nil, err
	}
	src.meta = pf.ParquetReader().MetaData()
	if src.sch, err = pf.Schema(); err != nil {
		return nil, err
	}
	var total int64
	for i := range pf.ParquetReader().NumRowGroups() {
		n := src.meta.RowGroup(i).NumRows()
		if n < 0 {
			return nil, fmt.Errorf("row group %d claims %d rows", i, n)
		}
		src.rows = append(src.rows, n)
		total += n
	}
	if total != src.meta.NumRows {
		return nil, fmt.Errorf("the footer claims %d rows, its row groups %d", src.meta.NumRows, total)
	}
	return src, nil
}

// open makes a reader; nil meta reads the footer. Columns are decoded by the
// calling goroutine only, so that guard sees every panic.
func (src *parquetSource) open(meta *metadata.FileMetaData) (*pqarrow.FileReader, error) {
	mem := allocatorFor(src.file.size)
	props := parquet.NewReaderProperties(mem)
	props.BufferedStreamEnabled = true // else a whole column chunk is held at a time
	opts := []file.ReadOption{file.WithReadProps(props)}
	if meta != nil {
		opts = append(opts, file.WithMetadata(meta))
	}
	r, err := file.NewParquetReader(src.file.reader(), opts...)
	if err != nil {
		return nil, err
	}
	if stored := r.MetaData().KeyValueMetadata().FindValue("ARROW:schema"); stored != nil {
		if err := checkStoredSchema(*stored); err != nil {
			return nil, err
		}
	}
	return pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: src.cfg.BatchRows}, mem)
}

func (src *parquetSource) schema() *arrow.Schema { return src.sch }

func (src *parquetSource) read(ctx context.Context, rank, size int, cols []int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var pf *pqarrow.FileReader
		if err := guard(func() (err error) { pf, err = src.open(src.meta); return err }); err != nil {
			yield(nil, err)
			return
		}
		for _, sp := range cutRows(src.rows, rank, size) {
			if !src.readSpan(ctx, pf, sp, cols, yield) {
				return
			}
		}
	}
}

// readSpan yields the rows of one row group; false ends the share.
func (src *parquetSource) readSpan(ctx context.Context, pf *pqarrow.FileReader, sp span, cols []int,
	yield func(arrow.RecordBatch, error) bool) bool {
	g := &groupReader{sch: project(src.sch, cols)}
	defer g.release()
	if err := guard(func() error { return g.open(ctx, pf, sp, cols) }); err != nil {
		yield(nil, fmt.Errorf("row group %d: %w", sp.unit, err))
		return false
	}
	for left := sp.hi - sp.lo; left > 0; {
		if err := ctx.Err(); err != nil {
			yield(nil, err)
			return false
		}
		n := min(left, src.cfg.BatchRows)
		var batch arrow.RecordBatch
		if err := guard(func() (err error) { batch, err = g.next(n); return err }); err != nil {
			yield(nil, fmt.Errorf("row group %d: %w", sp.unit, err))
			return false
		}
		more := yield(batch, nil)
		batch.Release()
		if !more {
			return false
		}
		left -= n
	}
	return true
}

// groupReader reads some columns of one row group in step.
type groupReader struct {
	sch     *arrow.Schema
	columns []*pqarrow.ColumnReader
}

func (g *groupReader) open(ctx context.Context, pf *pqarrow.FileReader, sp span, cols []int) error {
	for _, c := range cols {
		leaves := map[int]bool{}
		addLeaves(&pf.Manifest.Fields[c], leaves)
		col, err := pf.GetFieldReader(ctx, c, leaves, []int{sp.unit})
		if err != nil {
			return err
		}
		g.columns = append(g.columns, col)
		if sp.lo == 0 {
			continue
		}
		if !seekable(pf.ParquetReader().MetaData().RowGroup(sp.unit), leaves) {
			err = skip(col, sp.lo, pf.Props.BatchSize)
		} else {
			err = col.SeekToRow(sp.lo)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// seekable tells whether the library finds its way into the middle of a row
// group: it loses a dictionary whose place the footer does not tell, which some
// writers leave out.
func seekable(group *metadata.RowGroupMetaData, leaves map[int]bool) bool {
	for leaf := range leaves {
		chunk, err := group.ColumnChunk(leaf)
		if err != nil {
			return false
		}
		for _, e := range chunk.Encodings() {
			if (e == parquet.Encodings.RLEDict || e == parquet.Encodings.PlainDict) && !chunk.HasDictionaryPage() {
				return false
			}
		}
	}
	return true
}

// skip reads rows to drop them.
func skip(col *pqarrow.ColumnReader, rows, batch int64) error {
	for rows > 0 {
		n := min(rows, batch)
		chunked, err := col.NextBatch(n)
		if err != nil {
			return err
		}
		got := int64(chunked.Len())
		chunked.Release()
		if got != n {
			return fmt.Errorf("%d rows are there where %d are due", got, n)
		}
		rows -= n
	}
	return nil
}

func addLeaves(f *pqarrow.SchemaField, leaves map[int]bool) {
	if f.IsLeaf() {
		leaves[f.ColIndex] = true
	}
	for i := range f.Children {
		addLeaves(&f.Children[i], leaves)
	}
}

// next returns the next n rows. Fewer in the file than its footer says is damage.
func (g *groupReader) next(n int64) (arrow.RecordBatch, error) {
	arrays := make([]arrow.Array, len(g.columns))
	defer func() {
		for _, a := range arrays {
			if a != nil {
				a.Release()
			}
		}
	}()
	for i, col := range g.columns {
		chunked, err := col.NextBatch(n)
		if err != nil {
			return nil, err
		}
		arrays[i], err = single(chunked)
		if err != nil {
			return nil, err
		}
		if int64(arrays[i].Len()) != n {
			return nil, fmt.Errorf("column %q has %d rows where %d are due", g.sch.Field(i).Name, arrays[i].Len(), n)
		}
	}
	return array.NewRecordBatch(g.sch, arrays, n), nil
}

// single makes one array of chunked and releases it.
func single(chunked *arrow.Chunked) (arrow.Array, error) {
	defer chunked.Release()
	switch chunks := chunked.Chunks(); len(chunks) {
	case 0:
		return array.MakeArrayOfNull(memory.DefaultAllocator, chunked.DataType(), 0), nil
	case 1:
		chunks[0].Retain()
		return chunks[0], nil
	default:
		return array.Concatenate(chunks, memory.DefaultAllocator)
	}
}

func (g *groupReader) release() {
	for _, c := range g.columns {
		c.Release()
	}
}
