package flow

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// sampleSchema has a column of each kind that all formats can hold.
var sampleSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "name", Type: arrow.BinaryTypes.String},
	{Name: "ratio", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "ok", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond}, Nullable: true},
	{Name: "seen", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
}, nil)

// sample returns rows from … from+n-1 of the sample table, with nulls, quotes
// and line breaks in it.
func sample(from, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sampleSchema)
	defer b.Release()
	for i := from; i < from+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append([]string{"plain", "with, comma", "say \"hi\"", "two\nlines", "", "ümlaut\n,\"\n\""}[i%6])
		for c := 2; c < sampleSchema.NumFields(); c++ {
			if i%7 == c {
				b.Field(c).AppendNull()
				continue
			}
			switch f := b.Field(c).(type) {
			case *array.Float64Builder:
				f.Append(float64(i) / 8)
			case *array.BooleanBuilder:
				f.Append(i%2 == 0)
			case *array.Date32Builder:
				f.Append(arrow.Date32(i))
			case *array.TimestampBuilder:
				f.Append(arrow.Timestamp(i) * 1_000_001)
			}
		}
	}
	return b.NewRecordBatch()
}

// writeSample writes rows rows in units of unit rows.
func writeSample(t testing.TB, format Format, rows, unit int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample."+string(format))
	var out bytes.Buffer
	write, finish := sampleWriter(t, &out, format)
	for from := 0; from < rows; from += unit {
		batch := sample(from, min(unit, rows-from))
		if err := write(batch); err != nil {
			t.Fatal(err)
		}
		batch.Release()
	}
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// sampleWriter writes each batch as a unit of its own, unlike Writer.
func sampleWriter(t testing.TB, out *bytes.Buffer, format Format) (write func(arrow.RecordBatch) error, finish func() error) {
	t.Helper()
	switch format {
	case Parquet:
		w, err := pqarrow.NewFileWriter(sampleSchema, out, parquet.NewWriterProperties(), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
		if err != nil {
			t.Fatal(err)
		}
		return w.Write, w.Close
	case Arrow:
		w, err := ipc.NewFileWriter(out, ipc.WithSchema(sampleSchema))
		if err != nil {
			t.Fatal(err)
		}
		return w.Write, w.Close
	case ArrowStream:
		w := ipc.NewWriter(out, ipc.WithSchema(sampleSchema))
		return w.Write, w.Close
	}
	w, err := newCSVEncoder(out, sampleSchema)
	if err != nil {
		t.Fatal(err)
	}
	return w.write, w.close
}

// rowsOf reads shares in rank order, a line of text for each row.
func rowsOf(t testing.TB, path string, size int, cfg Config, columns []string) (rows []string, perRank []int) {
	t.Helper()
	in, err := Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	for rank := range size {
		before := len(rows)
		for batch, err := range in.Share(rank, size).Batches(context.Background(), columns) {
			if err != nil {
				t.Fatal(err)
			}
			if cfg.BatchRows > 0 && batch.NumRows() > cfg.BatchRows || batch.NumRows() == 0 {
				t.Fatalf("batch of %d rows, at most %d allowed", batch.NumRows(), cfg.BatchRows)
			}
			rows = append(rows, rowText(batch)...)
		}
		perRank = append(perRank, len(rows)-before)
	}
	return rows, perRank
}

func rowText(batch arrow.RecordBatch) []string {
	var rows []string
	for r := range int(batch.NumRows()) {
		var line []string
		for c, col := range batch.Columns() {
			line = append(line, fmt.Sprintf("%s=%q", batch.ColumnName(c), Text(col, r)))
		}
		rows = append(rows, strings.Join(line, " "))
	}
	return rows
}

// build makes a batch from columns given as name, type and values; nil is null.
func build(t testing.TB, columns ...any) arrow.RecordBatch {
	t.Helper()
	var fields []arrow.Field
	var arrays []arrow.Array
	for i := 0; i < len(columns); i += 3 {
		typ := columns[i+1].(arrow.DataType)
		b := array.NewBuilder(memory.DefaultAllocator, typ)
		for _, v := range columns[i+2].([]string) {
			if v == "null" {
				b.AppendNull()
			} else if err := b.AppendValueFromString(v); err != nil {
				t.Fatal(err)
			}
		}
		fields = append(fields, arrow.Field{Name: columns[i].(string), Type: typ, Nullable: true})
		arrays = append(arrays, b.NewArray())
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(arrays[0].Len()))
}
