package flow

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Groups is the whole result of an aggregation: the disjoint results of all
// ranks, with the order in which to show them.
type Groups struct {
	Batch arrow.RecordBatch // columns as Aggregate.Result makes them
	Order []int             // rows of Batch by count, largest first, then by key
}

// MergeGroups joins results of Aggregates that share no group; at least one,
// all of the same keys and aggregates. The parts are only borrowed. Release it.
func MergeGroups(keys int, parts []arrow.RecordBatch) (*Groups, error) {
	schema := parts[0].Schema()
	arrays := make([]arrow.Array, schema.NumFields())
	defer func() {
		for _, a := range arrays {
			if a != nil {
				a.Release()
			}
		}
	}()
	var rows int64
	for _, p := range parts {
		rows += p.NumRows()
	}
	for i := range arrays {
		columns := make([]arrow.Array, len(parts))
		for j, p := range parts {
			columns[j] = p.Column(i)
		}
		var err error
		if arrays[i], err = array.Concatenate(columns, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("flow: merge groups: column %q: %w", schema.Field(i).Name, err)
		}
	}
	g := &Groups{Batch: array.NewRecordBatch(schema, arrays, rows)}
	g.sort(keys)
	return g, nil
}

func (g *Groups) sort(keys int) {
	compares := []func(i, j int) int{}
	for k := range keys {
		compares = append(compares, comparer(g.Batch.Column(k)))
	}
	counts := g.Batch.Column(keys).(*array.Int64)
	g.Order = make([]int, g.Batch.NumRows())
	for i := range g.Order {
		g.Order[i] = i
	}
	slices.SortFunc(g.Order, func(i, j int) int {
		if c := cmp.Compare(counts.Value(j), counts.Value(i)); c != 0 {
			return c
		}
		for _, compare := range compares {
			if c := compare(i, j); c != 0 {
				return c
			}
		}
		return 0
	})
}

// Release gives the batch back.
func (g *Groups) Release() { g.Batch.Release() }

// WriteCSV writes a header line and all groups in order.
func (g *Groups) WriteCSV(w io.Writer) error {
	err := writeHeader(w, g.Batch.Schema())
	if err == nil {
		err = writeRows(w, g.Batch, g.Order)
	}
	if err != nil {
		return fmt.Errorf("flow: write groups: %w", err)
	}
	return nil
}

// comparer orders the rows of an array: nulls last, NaN after all numbers, and
// types without an order of their own by their text.
func comparer(arr arrow.Array) func(i, j int) int {
	compare := compareValues(arr)
	return func(i, j int) int {
		switch ni, nj := isNull(arr, i), isNull(arr, j); {
		case ni && nj:
			return 0
		case ni:
			return 1
		case nj:
			return -1
		}
		return compare(i, j)
	}
}

func compareValues(arr arrow.Array) func(i, j int) int {
	switch arr.DataType().ID() {
	case arrow.INT8:
		return compareFixed[int8](arr)
	case arrow.INT16:
		return compareFixed[int16](arr)
	case arrow.INT32, arrow.DATE32, arrow.TIME32, arrow.INTERVAL_MONTHS:
		return compareFixed[int32](arr)
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return compareFixed[int64](arr)
	case arrow.UINT8:
		return compareFixed[uint8](arr)
	case arrow.UINT16:
		return compareFixed[uint16](arr)
	case arrow.UINT32:
		return compareFixed[uint32](arr)
	case arrow.UINT64:
		return compareFixed[uint64](arr)
	case arrow.FLOAT32:
		return compareFixed[float32](arr)
	case arrow.FLOAT64:
		return compareFixed[float64](arr)
	case arrow.DECIMAL32:
		return compareFixed[decimal.Decimal32](arr)
	case arrow.DECIMAL64:
		return compareFixed[decimal.Decimal64](arr)
	case arrow.DECIMAL128:
		v := fixedValues[decimal.Decimal128](arr)
		return func(i, j int) int { return v(i).Cmp(v(j)) }
	case arrow.DECIMAL256:
		v := fixedValues[decimal.Decimal256](arr)
		return func(i, j int) int { return v(i).Cmp(v(j)) }
	}
	switch a := arr.(type) {
	case textValues:
		return func(i, j int) int { return strings.Compare(a.Value(i), a.Value(j)) }
	case byteValues:
		return func(i, j int) int { return slices.Compare(a.Value(i), a.Value(j)) }
	}
	return func(i, j int) int { return strings.Compare(arr.ValueStr(i), arr.ValueStr(j)) }
}

func compareFixed[T interface {
	arrow.FixedWidthType
	cmp.Ordered
}](arr arrow.Array) func(i, j int) int {
	v := fixedValues[T](arr)
	return func(i, j int) int {
		switch a, b := v(i), v(j); {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	}
}
