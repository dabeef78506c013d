package tables

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

func TestPackUnpack(t *testing.T) {
	r := newRand(t)
	for _, dt := range allTypes() {
		t.Run(dt.String(), func(t *testing.T) {
			schema := schemaOf(dt)
			c, mem, heap := newCodec(t, schema), newResource(t), checked(t)
			for _, rows := range []int{0, 1, 7, 8, 64, 65, 300} {
				b := randomBatch(t, heap, r, schema, rows)
				want := rowTexts(b)
				for _, codec := range []*Codec{c, c.Describing()} {
					d, err := codec.Pack(ctx, mem, b)
					if err != nil {
						t.Fatal(err)
					}
					got, err := c.Unpack(ctx, d)
					if err != nil {
						t.Fatal(err)
					}
					if err := array.ValidateRecordFull(got); err != nil {
						t.Errorf("%d rows: %v", rows, err)
					}
					if g := rowTexts(got); !slices.Equal(g, want) {
						t.Errorf("%d rows: got %v, want %v", rows, g, want)
					}
					if !got.Schema().Equal(schema) {
						t.Errorf("schema %v", got.Schema())
					}
					got.Release()
				}
				b.Release()
			}
		})
	}
}

func TestPackManyColumns(t *testing.T) {
	r := newRand(t)
	schema := schemaOf(allTypes()...)
	c, mem, heap := newCodec(t, schema), newResource(t), checked(t)
	b := randomBatch(t, heap, r, schema, 100)
	defer b.Release()
	d, err := c.Describing().Pack(ctx, mem, b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Unpack(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if !slices.Equal(rowTexts(got), rowTexts(b)) {
		t.Error("rows differ")
	}
	// A column outlives its batch, with the memory.
	col := got.Column(17)
	col.Retain()
	got.Retain()
	got.Release()
	if col.Len() != 100 || col.(*array.String).ValueStr(3) != b.Column(17).(*array.String).ValueStr(3) {
		t.Error("column lost")
	}
	col.Release()
}

func TestPackZeroColumns(t *testing.T) {
	c, mem := newCodec(t, arrow.NewSchema(nil, nil)), newResource(t)
	b := array.NewRecordBatch(c.Schema(), nil, 12)
	d, err := c.Pack(ctx, mem, b)
	if err != nil {
		t.Fatal(err)
	}
	if d.Data != nil {
		t.Error("a body without columns")
	}
	got, err := c.Unpack(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	if got.NumRows() != 12 || got.NumCols() != 0 {
		t.Errorf("%d rows, %d columns", got.NumRows(), got.NumCols())
	}
	got.Release()
}
