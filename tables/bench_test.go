package tables

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// flights is a batch like the flights table: two numbers and two airports out
// of about 230, the first ones frequent.
func flights(rows int) arrow.RecordBatch {
	r := rand.New(rand.NewPCG(3, 0))
	airport := func() string {
		i := int(229 * r.Float64() * r.Float64())
		return string([]byte{'A' + byte(i/26), 'A' + byte(i%26), 'X'})
	}
	delay, distance := array.NewInt64Builder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	origin, destination := array.NewStringBuilder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	for range rows {
		delay.Append(int64(r.IntN(200)) - 20)
		distance.Append(int64(r.IntN(2500)))
		origin.Append(airport())
		destination.Append(airport())
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "delay", Type: tInt64}, {Name: "distance", Type: tInt64},
		{Name: "origin", Type: tString}, {Name: "destination", Type: tString},
	}, nil)
	return batchOf(schema, rows, delay.NewArray(), distance.NewArray(), origin.NewArray(), destination.NewArray())
}

// perRow reports the rate over rows of each iteration.
func perRow(b *testing.B, rows int) {
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

func BenchmarkHash(b *testing.B) {
	const rows = 65536
	batch := flights(rows)
	nullable := array.NewInt64Builder(memory.DefaultAllocator)
	price := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 15, Scale: 2})
	when := array.NewTimestampBuilder(memory.DefaultAllocator, &arrow.TimestampType{Unit: arrow.Microsecond})
	dict := array.NewDictionaryBuilder(memory.DefaultAllocator, dictType(tInt32, tString)).(*array.BinaryDictionaryBuilder)
	for i := range rows {
		if i%7 == 0 {
			nullable.AppendNull()
		} else {
			nullable.Append(int64(i))
		}
		_ = price.AppendValueFromString(fmt.Sprintf("%d.%02d", i, i%100))
		when.Append(arrow.Timestamp(i * 1_000_003))
		_ = dict.AppendString(batch.Column(2).(*array.String).Value(i))
	}
	cols := []arrow.Array{batch.Column(0), nullable.NewArray(), batch.Column(2), dict.NewArray(), price.NewArray(), when.NewArray()}
	names := []string{"int64", "int64 with nulls", "string", "dictionary", "decimal", "timestamp"}
	var types []arrow.DataType
	for _, c := range cols {
		types = append(types, c.DataType())
	}
	batch = array.NewRecordBatch(schemaOf(types...), cols, rows)
	for i, name := range names {
		b.Run(name, func(b *testing.B) {
			h, err := NewHasher(batch.Schema(), []string{fmt.Sprintf("c%d", i)}, 1)
			if err != nil {
				b.Fatal(err)
			}
			var dst []uint64
			b.ReportAllocs()
			for b.Loop() {
				if dst, err = h.Hash(batch, dst); err != nil {
					b.Fatal(err)
				}
			}
			perRow(b, rows)
		})
	}
}

func BenchmarkPartition(b *testing.B) {
	for _, rows := range []int{8192, 131072} {
		batch := flights(rows)
		for _, parts := range []int{1, 8, 64, 1024} {
			b.Run(fmt.Sprintf("%d rows, %d parts", rows, parts), func(b *testing.B) {
				mem := newResource(b)
				p, err := NewPartitioner(newCodec(b, batch.Schema()), Config{Keys: []string{"origin"}, Parts: parts})
				if err != nil {
					b.Fatal(err)
				}
				var bytes int64
				b.ReportAllocs()
				for b.Loop() {
					for c, err := range p.Partition(ctx, mem, batch) {
						if err != nil {
							b.Fatal(err)
						}
						bytes += c.Data.Size()
						c.Data.Release()
					}
				}
				perRow(b, rows)
				b.SetBytes(bytes / int64(b.N))
			})
		}
	}
}

func BenchmarkPack(b *testing.B) {
	for _, rows := range []int{16, 65536} {
		b.Run(fmt.Sprintf("%d rows", rows), func(b *testing.B) {
			batch, mem := flights(rows), newResource(b)
			c := newCodec(b, batch.Schema())
			b.ReportAllocs()
			for b.Loop() {
				d, err := c.Pack(ctx, mem, batch)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(d.Size())
				d.Release()
			}
			perRow(b, rows)
		})
	}
}

// BenchmarkUnpack needs a chunk for each iteration: views of one body.
func BenchmarkUnpack(b *testing.B) {
	for _, rows := range []int{16, 1024, 65536} {
		b.Run(fmt.Sprintf("%d rows", rows), func(b *testing.B) {
			batch, mem := flights(rows), newResource(b)
			c := newCodec(b, batch.Schema())
			d, err := c.Pack(ctx, mem, batch)
			if err != nil {
				b.Fatal(err)
			}
			defer d.Release()
			b.SetBytes(d.Size())
			b.ReportAllocs()
			for b.Loop() {
				view := *d
				view.Data = d.Data.Slice(0, d.Data.Len())
				got, err := c.Unpack(ctx, &view)
				if err != nil {
					b.Fatal(err)
				}
				got.Release()
			}
			perRow(b, rows)
		})
	}
}

func BenchmarkConcat(b *testing.B) {
	const rows = 8192
	batch, mem := flights(rows), newResource(b)
	c := newCodec(b, batch.Schema())
	b.ReportAllocs()
	for b.Loop() {
		got, err := c.Concat(ctx, mem, batch, batch, batch, batch)
		if err != nil {
			b.Fatal(err)
		}
		got.Release()
	}
	perRow(b, 4*rows)
}

func BenchmarkDigest(b *testing.B) {
	const rows = 65536
	batch := flights(rows)
	d, err := NewDigester(batch.Schema())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Add(batch); err != nil {
			b.Fatal(err)
		}
	}
	perRow(b, rows)
}
