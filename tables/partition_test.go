package tables

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluice-engine/sluice/buffer"
)

// randomSchema gives a key or two of any kind, and other columns.
func randomSchema(r *rand.Rand) (schema *arrow.Schema, keys []string) {
	flat, all := flatTypes(), allTypes()
	types := []arrow.DataType{flat[r.IntN(len(flat))], flat[r.IntN(len(flat))]}
	for range r.IntN(4) {
		types = append(types, all[r.IntN(len(all))])
	}
	return schemaOf(types...), []string{"c1", "c0"}[:1+r.IntN(2)]
}

// partitionRows partitions b, checks every chunk and gives the rows of each
// partition as text.
func partitionRows(t *testing.T, c *Codec, cfg Config, mem *buffer.Resource, b arrow.RecordBatch) map[uint32][]string {
	p, err := NewPartitioner(c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHasher(c.Schema(), cfg.Keys, cfg.Seed)
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint32][]string{}
	last := uint32(0)
	for chunk, err := range p.Partition(ctx, mem, b) {
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Part < last || chunk.Rows == 0 {
			t.Errorf("partition %d with %d rows after partition %d", chunk.Part, chunk.Rows, last)
		}
		last = chunk.Part
		if d := chunk.Data.Data; d != nil && cfg.MaxChunk > 0 && d.Len() > cfg.MaxChunk && chunk.Rows > 1 {
			t.Errorf("%d rows in a chunk of %d bytes, %d allowed", chunk.Rows, d.Len(), cfg.MaxChunk)
		}
		got, err := c.Unpack(ctx, chunk.Data)
		if err != nil {
			t.Fatal(err)
		}
		if int(got.NumRows()) != chunk.Rows {
			t.Errorf("%d rows announced, %d unpacked", chunk.Rows, got.NumRows())
		}
		hashes, err := h.Hash(got, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range hashes {
			if part := PartitionOf(x, cfg.Parts); part != chunk.Part {
				t.Errorf("row %d of partition %d belongs to %d", i, chunk.Part, part)
			}
		}
		out[chunk.Part] = append(out[chunk.Part], rowTexts(got)...)
		got.Release()
	}
	return out
}

// TestPartitionKeepsRows is the property of the whole: every row comes out
// once, in its partition, in its order, with the same hash, however large the
// chunks and however the batch is cut. Fault F32.
func TestPartitionKeepsRows(t *testing.T) {
	r := newRand(t)
	for i := range 60 {
		schema, keys := randomSchema(r)
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			c, mem, heap := newCodec(t, schema), newResource(t), checked(t)
			rows := []int{0, 1, 5, 70, 400}[r.IntN(5)]
			cfg := Config{Keys: keys, Parts: []int{1, 2, 3, 8, 1000}[r.IntN(5)], Seed: r.Uint64()}
			b := randomBatch(t, heap, r, schema, rows)
			defer b.Release()

			want := map[uint32][]string{}
			h, err := NewHasher(schema, keys, cfg.Seed)
			if err != nil {
				t.Fatal(err)
			}
			hashes, err := h.Hash(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range rowTexts(b) {
				part := PartitionOf(hashes[i], cfg.Parts)
				want[part] = append(want[part], text)
			}
			for _, cfg.MaxChunk = range []int64{0, 1, 700, 5000} {
				comparePartitions(t, fmt.Sprintf("chunks of %d", cfg.MaxChunk), partitionRows(t, c, cfg, mem, b), want)
			}
			cut := int64(r.IntN(rows + 1))
			got := map[uint32][]string{}
			for _, part := range []arrow.RecordBatch{b.NewSlice(0, cut), b.NewSlice(cut, int64(rows))} {
				for k, v := range partitionRows(t, c, cfg, mem, part) {
					got[k] = append(got[k], v...)
				}
				part.Release()
			}
			comparePartitions(t, "two batches", got, want)
		})
	}
}

func comparePartitions(t *testing.T, what string, got, want map[uint32][]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d partitions with rows, want %d", what, len(got), len(want))
	}
	for part, rows := range want {
		if !slices.Equal(got[part], rows) {
			t.Errorf("%s: partition %d: %q, want %q", what, part, got[part], rows)
		}
	}
}

func TestPartitionOf(t *testing.T) {
	tests := []struct {
		hash  uint64
		parts int
		want  uint32
	}{
		{0, 1, 0}, {1<<64 - 1, 1, 0}, {0, 7, 0}, {1<<64 - 1, 7, 6}, {1 << 63, 2, 1}, {1<<63 - 1, 2, 0},
		{1<<64 - 1, 1 << 24, 1<<24 - 1},
	}
	for _, tt := range tests {
		if got := PartitionOf(tt.hash, tt.parts); got != tt.want {
			t.Errorf("%#x of %d: %d, want %d", tt.hash, tt.parts, got, tt.want)
		}
	}
}

func TestPartitionsAreEven(t *testing.T) {
	const rows, parts = 100_000, 64
	schema := schemaOf(tInt64)
	heap, mem := checked(t), newResource(t)
	bld := array.NewInt64Builder(heap)
	defer bld.Release()
	for i := range rows {
		bld.Append(int64(i))
	}
	b := batchOf(schema, rows, bld.NewArray())
	defer b.Release()
	p, err := NewPartitioner(newCodec(t, schema), Config{Keys: []string{"c0"}, Parts: parts})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for c, err := range p.Partition(ctx, mem, b) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		if c.Rows < rows/parts*8/10 || c.Rows > rows/parts*12/10 {
			t.Errorf("partition %d has %d rows, the mean is %d", c.Part, c.Rows, rows/parts)
		}
		c.Data.Release()
	}
	if seen != parts {
		t.Errorf("%d partitions of %d", seen, parts)
	}
}

// TestWindows splits more rows than are split at once, of no bytes at all and
// of one.
func TestWindows(t *testing.T) {
	const rows = 2*window + 10
	mem := newResource(t)
	bytes := array.NewInt8Builder(memory.DefaultAllocator)
	bytes.AppendValues(make([]int8, rows), nil)
	b := batchOf(schemaOf(arrow.Null, tInt8), rows, array.NewNull(rows), bytes.NewArray())
	c := newCodec(t, b.Schema())
	p, err := NewPartitioner(c, Config{Keys: []string{"c0"}, Parts: 3})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for chunk, err := range p.Partition(ctx, mem, b) {
		if err != nil {
			t.Fatal(err)
		}
		part, err := c.Unpack(ctx, chunk.Data)
		if err != nil {
			t.Fatal(err)
		}
		got += int(part.NumRows())
		part.Release()
	}
	if got != rows || sumOf(t, b).Rows != rows {
		t.Errorf("%d rows of %d", got, rows)
	}
	bare := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, rows)
	c = newCodec(t, bare.Schema())
	if _, err := c.Pack(ctx, mem, bare); !errors.Is(err, errTooLong) {
		t.Errorf("%d rows in no bytes: %v", rows, err)
	}
	chunks := 0
	for d, err := range c.Split(ctx, mem, bare, 1) {
		if err != nil {
			t.Fatal(err)
		}
		part, err := c.Unpack(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		chunks++
		part.Release()
	}
	if chunks != 3 {
		t.Errorf("%d chunks", chunks)
	}
}

// TestSkew has all rows of one key in one partition. Fault F32.
func TestSkew(t *testing.T) {
	schema := schemaOf(tString, tInt32)
	heap, mem := checked(t), newResource(t)
	s, n := array.NewStringBuilder(heap), array.NewInt32Builder(heap)
	defer s.Release()
	defer n.Release()
	for i := range 1000 {
		s.Append("ORD")
		n.Append(int32(i))
	}
	b := batchOf(schema, 1000, s.NewArray(), n.NewArray())
	defer b.Release()
	got := partitionRows(t, newCodec(t, schema), Config{Keys: []string{"c0"}, Parts: 100}, mem, b)
	if len(got) != 1 {
		t.Errorf("%d partitions", len(got))
	}
	for _, rows := range got {
		if !slices.Equal(rows, rowTexts(b)) {
			t.Error("rows differ")
		}
	}
}

func TestPartitionStops(t *testing.T) {
	schema := schemaOf(tInt64)
	mem, heap := newResource(t), checked(t)
	b := randomBatch(t, heap, newRand(t), schema, 100)
	defer b.Release()
	p, err := NewPartitioner(newCodec(t, schema), Config{Keys: []string{"c0"}, Parts: 8})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a Partitioner goes on after a loop that ended early
		n := 0
		for c, err := range p.Partition(ctx, mem, b) {
			if err != nil {
				t.Fatal(err)
			}
			c.Data.Release()
			if n++; n == 2 {
				break
			}
		}
	}
}

func TestPartitionNoMemory(t *testing.T) {
	schema := schemaOf(tInt64)
	heap := checked(t)
	var cfg buffer.Config
	cfg.Limits[buffer.Host] = buffer.Bytes(1 << 10)
	mem, err := buffer.NewResource(nil, nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := mem.Close(); err != nil {
			t.Error(err)
		}
	}()
	b := randomBatch(t, heap, newRand(t), schema, 1000)
	defer b.Release()
	p, err := NewPartitioner(newCodec(t, schema), Config{Keys: []string{"c0"}, Parts: 1})
	if err != nil {
		t.Fatal(err)
	}
	errs := 0
	for _, err := range p.Partition(ctx, mem, b) {
		if !errors.Is(err, buffer.ErrTooLarge) {
			t.Errorf("error %v", err)
		}
		errs++
	}
	if errs != 1 {
		t.Errorf("%d errors", errs)
	}
}

func TestConfigFaults(t *testing.T) {
	c := newCodec(t, arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: tInt32}, {Name: "tags", Type: arrow.ListOf(tString)}, {Name: "a", Type: tInt32},
	}, nil))
	_, err := NewPartitioner(c, Config{Keys: []string{"tags", "b", "a"}, Parts: 0, MaxChunk: -1})
	if !errors.Is(err, ErrKeyType) || !errors.Is(err, ErrNoColumn) {
		t.Fatalf("error %v", err)
	}
	for _, part := range []string{`key "tags": type cannot be a key: list<item: utf8, nullable>`, `key "b": no such column`, `key "a"`, "0 partitions", "-1 bytes"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if _, err := NewPartitioner(c, Config{Parts: 1}); err == nil {
		t.Error("no keys accepted")
	}
}

func TestKeyTypes(t *testing.T) {
	for _, dt := range flatTypes() {
		if _, err := NewHasher(schemaOf(dt), []string{"c0"}, 0); err != nil {
			t.Errorf("%v: %v", dt, err)
		}
	}
	more := []arrow.DataType{dictType(tInt8, arrow.ListOf(tInt8)), arrow.RunEndEncodedOf(tInt16, arrow.StructOf())}
	for _, dt := range append(nestedTypes(), more...) {
		if _, err := NewHasher(schemaOf(dt), []string{"c0"}, 0); !errors.Is(err, ErrKeyType) {
			t.Errorf("%v: error %v", dt, err)
		}
	}
}

func TestOtherSchema(t *testing.T) {
	mem, heap := newResource(t), checked(t)
	b := randomBatch(t, heap, newRand(t), schemaOf(tInt64, tString), 3)
	defer b.Release()
	for _, schema := range []*arrow.Schema{schemaOf(tInt64), schemaOf(tInt32, tString)} {
		if _, err := newCodec(t, schema).Pack(ctx, mem, b); !errors.Is(err, ErrSchema) {
			t.Errorf("error %v", err)
		}
	}
	d, err := newCodec(t, b.Schema()).Pack(ctx, mem, b)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	if _, err := newCodec(t, schemaOf(tInt64, tInt32)).Unpack(ctx, d); !errors.Is(err, ErrSchema) {
		t.Errorf("error %v", err)
	}
	if _, err := Unpack(ctx, d); !errors.Is(err, ErrSchema) {
		t.Errorf("error %v", err)
	}
}

// TestInvalidBatches are arrays that break Arrow's rules, as a damaged file
// can hold them: an error each, no panic.
func TestInvalidBatches(t *testing.T) {
	mem := newResource(t)
	buf := func(b ...byte) *memory.Buffer { return memory.NewBufferBytes(b) }
	str := array.NewData(tString, 1, []*memory.Buffer{nil, buf(0, 0, 0, 0, 1, 0, 0, 0), buf('x')}, nil, 0, 0)
	tests := []struct {
		name string
		data *array.Data
	}{
		{"no values", array.NewData(tInt64, 2, []*memory.Buffer{nil, nil}, nil, 0, 0)},
		{"short validity", array.NewData(tInt8, 9, []*memory.Buffer{buf(1), buf(1, 2, 3, 4, 5, 6, 7, 8, 9)}, nil, 8, 0)},
		{"descending offsets", array.NewData(tString, 2, []*memory.Buffer{nil, buf(0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0), buf('x')}, nil, 0, 0)},
		{"negative offset", array.NewData(tString, 2, []*memory.Buffer{nil, buf(0, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0), buf('x')}, nil, 0, 0)},
		{"index", array.NewDataWithDictionary(dictType(tInt8, tString), 2, []*memory.Buffer{nil, buf(0, 1)}, 0, 0, str)},
		{"negative index", array.NewDataWithDictionary(dictType(tInt8, tString), 2, []*memory.Buffer{nil, buf(0, 0xff)}, 0, 0, str)},
		{"type code", array.NewData(arrow.SparseUnionOf(nil, nil), 1, []*memory.Buffer{nil, buf(5)}, nil, 0, 0)},
		{"view", array.NewData(arrow.BinaryTypes.StringView, 1, []*memory.Buffer{nil, buf(13, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0)}, nil, 0, 0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			arr := array.MakeFromData(tt.data)
			b := array.NewRecordBatch(schemaOf(tt.data.DataType()), []arrow.Array{arr}, int64(arr.Len()))
			c := newCodec(t, b.Schema())
			if _, err := c.Pack(ctx, mem, b); !errors.Is(err, ErrInvalid) {
				t.Errorf("pack: %v", err)
			}
			if _, err := c.Concat(ctx, mem, b); !errors.Is(err, ErrInvalid) {
				t.Errorf("concat: %v", err)
			}
			d, err := NewDigester(b.Schema())
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Add(b); !errors.Is(err, ErrInvalid) {
				t.Errorf("digest: %v", err)
			}
			if h, err := NewHasher(b.Schema(), []string{"c0"}, 0); err == nil {
				if _, err := h.Hash(b, nil); !errors.Is(err, ErrInvalid) {
					t.Errorf("hash: %v", err)
				}
			}
		})
	}
}
