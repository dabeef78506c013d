package tables

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

func sumOf(t testing.TB, batches ...arrow.RecordBatch) MultisetSum {
	d, err := NewDigester(batches[0].Schema())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := d.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	return d.Sum()
}

// TestMultisetSum: the sum survives being partitioned, packed, cut and joined
// in another order.
func TestMultisetSum(t *testing.T) {
	r := newRand(t)
	schema := schemaOf(allTypes()...)
	c, mem, heap := newCodec(t, schema), newResource(t), checked(t)
	b := randomBatch(t, heap, r, schema, 150)
	defer b.Release()
	want := sumOf(t, b)
	if want.Rows != 150 {
		t.Errorf("%d rows", want.Rows)
	}
	p, err := NewPartitioner(c, Config{Keys: []string{"c7"}, Parts: 7, MaxChunk: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	var parts []arrow.RecordBatch
	var total MultisetSum
	for chunk, err := range p.Partition(ctx, mem, b) {
		if err != nil {
			t.Fatal(err)
		}
		part, err := c.Unpack(ctx, chunk.Data)
		if err != nil {
			t.Fatal(err)
		}
		defer part.Release()
		parts = append(parts, part)
		total = total.Plus(sumOf(t, part))
	}
	if got := sumOf(t, parts...); got != want || total != want {
		t.Errorf("sums %v and %v, want %v", got, total, want)
	}
	if got := sumOf(t, parts[1:]...); got == want {
		t.Error("a lost chunk goes unnoticed")
	}
}

// TestMultisetSumNotices has sums that must differ.
func TestMultisetSumNotices(t *testing.T) {
	list := arrow.ListOf(tInt8)
	texts := []string{
		`[[1, 2], [3]]`, `[[1], [2, 3]]`, `[[1, 2, 3], []]`, `[[1, 2, 3], null]`, `[[2, 1], [3]]`,
		`[[1, 2], [3], [3]]`, `[[1, 2]]`, `[[1, 2], [null]]`, `[]`,
	}
	seen := map[MultisetSum]string{}
	for _, text := range texts {
		arr := fromJSON(t, list, text)
		b := batchOf(schemaOf(list), arr.Len(), arr)
		s := sumOf(t, b)
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s: %v", text, other, s)
		}
		seen[s] = text
		b.Release()
	}
}

// TestMultisetSumOfBareRows counts rows without columns.
func TestMultisetSumOfBareRows(t *testing.T) {
	b := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 4)
	defer b.Release()
	if s := sumOf(t, b, b); s.Rows != 8 || s.String() != "0000000000000000/8" {
		t.Errorf("sum %v", s)
	}
}
