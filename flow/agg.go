package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Func is what an Agg computes.
type Func string

// The functions, by the names that ParseAggs reads.
const (
	Count Func = "count"
	Sum   Func = "sum"
	Min   Func = "min"
	Max   Func = "max"
)

// Agg is one aggregate: a function over a column. Count without a column counts
// rows, with one its values that are not null.
type Agg struct {
	Func   Func
	Column string
}

// String returns the name of the result column, such as sum(distance).
func (a Agg) String() string {
	if a.Column == "" {
		return string(a.Func)
	}
	return fmt.Sprintf("%s(%s)", a.Func, a.Column)
}

// ParseAggs reads a list such as count,sum(distance),min(delay).
func ParseAggs(list string) ([]Agg, error) {
	var aggs []Agg
	for _, item := range strings.Split(list, ",") {
		name, rest, hasColumn := strings.Cut(strings.TrimSpace(item), "(")
		column, closed := strings.CutSuffix(rest, ")")
		a := Agg{Func(name), column}
		switch known := slices.Contains([]Func{Count, Sum, Min, Max}, a.Func); {
		case !known, hasColumn != closed, hasColumn && column == "", !hasColumn && a.Func != Count:
			return nil, fmt.Errorf("flow: parse aggregate %q: want count, count(COL), sum(COL), min(COL) or max(COL)", item)
		case slices.Contains(aggs, a):
			return nil, fmt.Errorf("flow: parse aggregate %q: given twice", item)
		}
		aggs = append(aggs, a)
	}
	return aggs, nil
}

// Needed returns the columns that grouping by keys with aggs reads, each once.
func Needed(keys []string, aggs []Agg) []string {
	var names []string
	for _, k := range keys {
		if !slices.Contains(names, k) {
			names = append(names, k)
		}
	}
	for _, a := range aggs {
		if a.Column != "" && !slices.Contains(names, a.Column) {
			names = append(names, a.Column)
		}
	}
	return names
}

// Aggregate groups rows by key columns and keeps the aggregates of each group.
// Null is a key like any other and equal to itself, as are NaN and, with each
// other, the two zeros; aggregates skip nulls and are null over nothing else.
// Integer and decimal sums are exact: an overflow is an error. NaN is the
// largest number. Not for concurrent use.
type Aggregate struct {
	keys   []string
	aggs   []Agg
	groups map[string]uint32
	stores []*keyStore
	counts []int64 // rows of each group
	accs   []accumulator

	row     []byte   // the key of one row, encoded
	groupOf []uint32 // group of each row of a batch
	cells   []cells  // the batch's columns: keys, then one for each agg with a column
}

// NewAggregate prepares a grouping of rows of the given schema. Errors match
// ErrNoColumn and ErrType.
func NewAggregate(schema *arrow.Schema, keys []string, aggs []Agg) (*Aggregate, error) {
	a := &Aggregate{keys: keys, aggs: aggs, groups: map[string]uint32{}}
	if len(keys) == 0 {
		return nil, errors.New("flow: aggregate: no key column")
	}
	for _, name := range keys {
		typ, err := columnType(schema, name)
		if err == nil && !hashable(typ) {
			err = fmt.Errorf("%w: column %q of type %s cannot be a key", ErrType, name, typ)
		}
		if err != nil {
			return nil, fmt.Errorf("flow: aggregate: %w", err)
		}
		a.stores = append(a.stores, newKeyStore(typ))
	}
	for _, agg := range aggs {
		acc, err := newAccumulator(schema, agg)
		if err != nil {
			return nil, fmt.Errorf("flow: aggregate: %w", err)
		}
		a.accs = append(a.accs, acc)
	}
	a.cells = make([]cells, len(keys)+len(aggs))
	return a, nil
}

func newAccumulator(schema *arrow.Schema, agg Agg) (accumulator, error) {
	if agg.Column == "" {
		return nil, nil
	}
	typ, err := columnType(schema, agg.Column)
	if err != nil {
		return nil, err
	}
	var acc accumulator
	switch agg.Func {
	case Count:
		acc = &countValues{}
	case Sum:
		acc = newSum(typ)
	case Min:
		acc = newExtreme(typ, false)
	case Max:
		acc = newExtreme(typ, true)
	}
	if acc == nil {
		return nil, fmt.Errorf("%w: %s over type %s", ErrType, agg, typ)
	}
	return acc, nil
}

// columnType returns the type of a column's values, dictionaries and extensions
// resolved.
func columnType(schema *arrow.Schema, name string) (arrow.DataType, error) {
	cols, err := Columns(schema, []string{name})
	if err != nil {
		return nil, err
	}
	return plainType(schema.Field(cols[0]).Type), nil
}

// Add takes the rows of a batch of the schema given to NewAggregate; the order
// of columns may differ. The batch is only borrowed. After an error the
// Aggregate is of no use.
func (a *Aggregate) Add(batch arrow.RecordBatch) error {
	columns := slices.Clone(a.keys)
	for _, agg := range a.aggs {
		columns = append(columns, agg.Column)
	}
	for i, name := range columns {
		if name == "" {
			continue
		}
		found := batch.Schema().FieldIndices(name)
		if len(found) == 0 {
			return fmt.Errorf("flow: aggregate: %w: %q", ErrNoColumn, name)
		}
		a.cells[i].resolve(batch.Column(found[0]))
	}
	a.assign(int(batch.NumRows()))
	for i, acc := range a.accs {
		if acc == nil {
			continue
		}
		acc.grow(len(a.counts))
		if err := acc.add(a.groupOf, &a.cells[len(a.keys)+i]); err != nil {
			return fmt.Errorf("flow: aggregate: %s: %w", a.aggs[i], err)
		}
	}
	return nil
}

// assign finds the group of each row, makes the new ones, and counts.
func (a *Aggregate) assign(rows int) {
	encoders := make([]encoder, len(a.keys))
	for i := range encoders {
		encoders[i] = encoderOf(a.cells[i].values)
	}
	a.groupOf = slices.Grow(a.groupOf[:0], rows)[:rows]
	for r := range rows {
		a.row = a.row[:0]
		for i, encode := range encoders {
			at := a.cells[i].at[r]
			if at < 0 {
				a.row = append(a.row, 0)
				continue
			}
			a.row = encode(append(a.row, 1), int(at))
		}
		g, found := a.groups[string(a.row)]
		if !found {
			g = uint32(len(a.counts))
			a.groups[string(a.row)] = g
			a.counts = append(a.counts, 0)
			rest := a.row
			for _, s := range a.stores {
				rest = s.add(rest)
			}
		}
		a.counts[g]++
		a.groupOf[r] = g
	}
}

// Groups returns how many groups there are so far.
func (a *Aggregate) Groups() int { return len(a.counts) }

// Result returns one row per group, in no particular order: the key columns,
// the row count, then the other aggregates. Release it.
func (a *Aggregate) Result() (arrow.RecordBatch, error) {
	n := len(a.counts)
	fields := make([]arrow.Field, 0, len(a.keys)+1+len(a.aggs))
	arrays := make([]arrow.Array, 0, cap(fields))
	defer func() {
		for _, arr := range arrays {
			arr.Release()
		}
	}()
	add := func(name string, arr arrow.Array) {
		fields = append(fields, arrow.Field{Name: name, Type: arr.DataType(), Nullable: true})
		arrays = append(arrays, arr)
	}
	for i, s := range a.stores {
		arr, err := s.array(n)
		if err != nil {
			return nil, fmt.Errorf("flow: aggregate: key %q: %w", a.keys[i], err)
		}
		add(a.keys[i], arr)
	}
	add(string(Count), fixedArray(arrow.PrimitiveTypes.Int64, slices.Clone(a.counts), nil))
	for i, acc := range a.accs {
		if acc != nil {
			acc.grow(n)
			add(a.aggs[i].String(), acc.array())
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(n)), nil
}

// accumulator keeps one aggregate of every group. add may be given only rows of
// groups that grow has made room for.
type accumulator interface {
	grow(groups int)
	add(groups []uint32, c *cells) error
	array() arrow.Array
}

// fixedArray makes an array over values; seen nil means none is null.
func fixedArray[T arrow.FixedWidthType](typ arrow.DataType, values []T, seen []bool) arrow.Array {
	validity, nulls := bitmap(seen)
	data := array.NewData(typ, len(values), []*memory.Buffer{validity, memory.NewBufferBytes(arrow.GetBytes(values))}, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// bitmap packs seen into a validity buffer, nil if nothing is null.
func bitmap(seen []bool) (*memory.Buffer, int) {
	bits := make([]byte, (len(seen)+7)/8)
	nulls := 0
	for i, ok := range seen {
		if ok {
			bits[i/8] |= 1 << (i % 8)
		} else {
			nulls++
		}
	}
	if nulls == 0 {
		return nil, 0
	}
	return memory.NewBufferBytes(bits), nulls
}
