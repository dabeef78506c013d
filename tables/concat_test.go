package tables

import (
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluice-engine/sluice/buffer"
)

func TestConcat(t *testing.T) {
	r := newRand(t)
	for _, dt := range allTypes() {
		if d, ok := dt.(*arrow.DictionaryType); ok && d.Ordered {
			continue // below
		}
		t.Run(dt.String(), func(t *testing.T) {
			schema, mem, heap := schemaOf(dt), newResource(t), checked(t)
			c := newCodec(t, schema)
			var parts []arrow.RecordBatch
			var want []string
			for _, rows := range []int{5, 0, 64, 1, 33} {
				b := randomBatch(t, heap, r, schema, rows)
				parts = append(parts, b)
				want = append(want, rowTexts(b)...)
			}
			// Chunks of a peer too, and one twice.
			d, err := c.Pack(ctx, mem, parts[2])
			if err != nil {
				t.Fatal(err)
			}
			chunk, err := c.Unpack(ctx, d)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, chunk, parts[0])
			parts[0].Retain()
			want = append(append(want, rowTexts(chunk)...), rowTexts(parts[0])...)
			got, err := c.Concat(ctx, mem, parts...)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range parts {
				b.Release()
			}
			if err := array.ValidateRecordFull(got); err != nil {
				t.Error(err)
			}
			if g := rowTexts(got); !slices.Equal(g, want) {
				t.Errorf("got %v, want %v", g, want)
			}
			got.Release()
		})
	}
}

func TestConcatNothing(t *testing.T) {
	c, mem := newCodec(t, schemaOf(allTypes()...)), newResource(t)
	got, err := c.Concat(ctx, mem)
	if err != nil {
		t.Fatal(err)
	}
	if got.NumRows() != 0 {
		t.Errorf("%d rows", got.NumRows())
	}
	got.Release()
}

func dictBatch(t *testing.T, dt *arrow.DictionaryType, indices, values string) arrow.RecordBatch {
	i, v := fromJSON(t, dt.IndexType, indices), fromJSON(t, dt.ValueType, values)
	defer i.Release()
	defer v.Release()
	arr := array.NewDictionaryArray(dt, i, v)
	return batchOf(schemaOf(dt), arr.Len(), arr)
}

func TestConcatDictionaries(t *testing.T) {
	mem := newResource(t)
	ordered := &arrow.DictionaryType{IndexType: tInt8, ValueType: tString, Ordered: true}
	tests := []struct {
		name          string
		dt            *arrow.DictionaryType
		indexA, dictA string
		indexB, dictB string
		values        string // of the result; "" for an error
		rows          []string
	}{
		{"merged", dictType(tInt8, tString), `[2, 0, null]`, `["a", "b", "c"]`, `[0, 1]`, `["c", "d"]`, `["c" "a" "d"]`, []string{`"c"`, `"a"`, `null`, `"c"`, `"d"`}},
		{"nulls inside", dictType(tInt8, tString), `[0, 1]`, `[null, "b"]`, `[1]`, `["x", null]`, `[(null) "b"]`, []string{`null`, `"b"`, `null`}},
		{"numbers", dictType(tUint8, tInt64), `[0]`, `[7]`, `[1, 0]`, `[7, 8]`, `[7 8]`, []string{`7`, `8`, `7`}},
		{"truth", dictType(tInt8, arrow.FixedWidthTypes.Boolean), `[0, 1]`, `[true, false]`, `[0]`, `[false]`, `[true false]`, []string{`true`, `false`, `false`}},
		{"large", dictType(tInt8, arrow.BinaryTypes.LargeString), `[0]`, `["x"]`, `[0, 1]`, `["x", "y"]`, `["x" "y"]`, []string{`"x"`, `"x"`, `"y"`}},
		{"views", dictType(tInt8, arrow.BinaryTypes.StringView), `[0]`, `["longer than a header"]`, `[0, 1]`, `["longer than a header", "y"]`, `["longer than a header" "y"]`,
			[]string{`"longer than a header"`, `"longer than a header"`, `"y"`}},
		{"lists stay apart", dictType(tInt8, arrow.ListOf(tInt8)), `[0]`, `[[1]]`, `[0]`, `[[1]]`, `[[1] [1]]`, []string{`[1]`, `[1]`}},
		{"ordered, equal", ordered, `[1]`, `["a", "b", "c"]`, `[2]`, `["a", "b", "c"]`, `["a" "b" "c"]`, []string{`"b"`, `"c"`}},
		{"ordered, different", ordered, `[0]`, `["a", "b"]`, `[0]`, `["b", "a"]`, "", nil},
		{"all null", dictType(tInt8, tString), `[null]`, `["a"]`, `[null]`, `["b"]`, `[]`, []string{`null`, `null`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := dictBatch(t, tt.dt, tt.indexA, tt.dictA), dictBatch(t, tt.dt, tt.indexB, tt.dictB)
			defer a.Release()
			defer b.Release()
			got, err := newCodec(t, a.Schema()).Concat(ctx, mem, a, b)
			if err != nil || tt.values == "" {
				if err == nil || tt.values != "" {
					t.Errorf("error %v", err)
				}
				return
			}
			defer got.Release()
			var rows []string
			for _, row := range rowTexts(got) {
				rows = append(rows, row[:len(row)-1])
			}
			if !slices.Equal(rows, tt.rows) {
				t.Errorf("rows %v, want %v", rows, tt.rows)
			}
			if v := got.Column(0).(*array.Dictionary).Dictionary().String(); v != tt.values {
				t.Errorf("dictionary %v, want %v", v, tt.values)
			}
		})
	}
}

// TestConcatTooManyValues: 200 different values do not fit indices of 8 bits.
func TestConcatTooManyValues(t *testing.T) {
	mem := newResource(t)
	dt := dictType(tInt8, tInt64)
	var parts []arrow.RecordBatch
	for i := range 2 {
		vals, idx := array.NewInt64Builder(memory.DefaultAllocator), array.NewInt8Builder(memory.DefaultAllocator)
		for j := range 100 {
			vals.Append(int64(100*i + j))
			idx.Append(int8(j))
		}
		parts = append(parts, batchOf(schemaOf(dt), 100, array.NewDictionaryArray(dt, idx.NewArray(), vals.NewArray())))
	}
	if _, err := newCodec(t, schemaOf(dt)).Concat(ctx, mem, parts...); !errors.Is(err, errTooLong) {
		t.Errorf("error %v", err)
	}
}

// TestPackKeepsUsedValues: a chunk carries the dictionary values its rows use,
// an ordered dictionary whole.
func TestPackKeepsUsedValues(t *testing.T) {
	mem := newResource(t)
	for _, tt := range []struct {
		ordered bool
		want    string
	}{{false, `["d" "b"]`}, {true, `["a" "b" "c" "d"]`}} {
		b := dictBatch(t, &arrow.DictionaryType{IndexType: tInt16, ValueType: tString, Ordered: tt.ordered}, `[3, 1, 3, null]`, `["a", "b", "c", "d"]`)
		c := newCodec(t, b.Schema())
		d, err := c.Pack(ctx, mem, b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Unpack(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		if v := got.Column(0).(*array.Dictionary).Dictionary().String(); v != tt.want {
			t.Errorf("ordered %v: %v, want %v", tt.ordered, v, tt.want)
		}
		got.Release()
		b.Release()
	}
}

func TestSplit(t *testing.T) {
	r := newRand(t)
	schema := schemaOf(allTypes()...)
	c, mem, heap := newCodec(t, schema), newResource(t), checked(t)
	b := randomBatch(t, heap, r, schema, 200)
	defer b.Release()
	for _, size := range []int64{1, 20_000, 1 << 30} {
		var got []string
		n := 0
		for d, err := range c.Split(ctx, mem, b, size) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			length := d.Data.Len()
			part, err := c.Unpack(ctx, d)
			if err != nil {
				t.Fatal(err)
			}
			if length > size && part.NumRows() > 1 {
				t.Errorf("%d bytes with %d rows, %d allowed", length, part.NumRows(), size)
			}
			got = append(got, rowTexts(part)...)
			part.Release()
		}
		if !slices.Equal(got, rowTexts(b)) {
			t.Errorf("chunks of %d: rows differ", size)
		}
		if want := map[int64]int{1: 200, 1 << 30: 1}[size]; want != 0 && n != want {
			t.Errorf("chunks of %d: %d, want %d", size, n, want)
		}
	}
	for _, err := range c.Split(ctx, mem, b, 0) {
		if err == nil {
			t.Error("chunks of nothing accepted")
		}
	}
}

// TestSplitFills: chunks of fixed-width rows are nearly as large as allowed.
func TestSplitFills(t *testing.T) {
	schema, mem, heap := schemaOf(tInt64, tInt32), newResource(t), checked(t)
	c := newCodec(t, schema)
	i64, i32 := array.NewInt64Builder(heap), array.NewInt32Builder(heap)
	defer i64.Release()
	defer i32.Release()
	for i := range 100_000 {
		i64.Append(int64(i))
		i32.Append(int32(i))
	}
	b := batchOf(schema, 100_000, i64.NewArray(), i32.NewArray())
	defer b.Release()
	n := 0
	for d, err := range c.Split(ctx, mem, b, 100_000) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		d.Release()
	}
	if n > 13 { // 12 at least
		t.Errorf("%d chunks", n)
	}
}

func TestConcatNoMemory(t *testing.T) {
	heap := checked(t)
	var cfg buffer.Config
	cfg.Limits[buffer.Host] = buffer.Bytes(1 << 10)
	mem, err := buffer.NewResource(nil, nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := randomBatch(t, heap, newRand(t), schemaOf(tInt64), 1000)
	defer b.Release()
	if _, err := newCodec(t, b.Schema()).Concat(ctx, mem, b, b); !errors.Is(err, buffer.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
	if err := mem.Close(); err != nil {
		t.Error(err)
	}
}
