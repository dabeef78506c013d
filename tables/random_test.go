package tables

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sluice-engine/sluice/buffer"
)

// labelType is an extension type for tests.
type labelType struct{ arrow.ExtensionBase }

type labelArray struct{ array.ExtensionArrayBase }

func newLabelType() *labelType {
	return &labelType{arrow.ExtensionBase{Storage: arrow.BinaryTypes.String}}
}

func (*labelType) ArrayType() reflect.Type { return reflect.TypeOf(labelArray{}) }
func (*labelType) ExtensionName() string   { return "test.label" }
func (*labelType) Serialize() string       { return "v1" }
func (*labelType) ExtensionEquals(o arrow.ExtensionType) bool {
	return o.ExtensionName() == "test.label"
}
func (*labelType) Deserialize(arrow.DataType, string) (arrow.ExtensionType, error) {
	return newLabelType(), nil
}

func dictType(index, value arrow.DataType) *arrow.DictionaryType {
	return &arrow.DictionaryType{IndexType: index, ValueType: value}
}

var (
	tInt8, tInt16, tInt32, tInt64   = arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64
	tUint8, tUint16, tUint32, tUint = arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64
	tFloat32, tFloat64, tString     = arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String
	unionFields                     = []arrow.Field{{Name: "n", Type: tInt32, Nullable: true}, {Name: "s", Type: tString, Nullable: true}}
)

// flatTypes can be keys, nestedTypes cannot.
func flatTypes() []arrow.DataType {
	return []arrow.DataType{
		arrow.Null, arrow.FixedWidthTypes.Boolean,
		tInt8, tInt16, tInt32, tInt64, tUint8, tUint16, tUint32, tUint,
		arrow.FixedWidthTypes.Float16, tFloat32, tFloat64,
		&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: 3},
		&arrow.Decimal128Type{Precision: 30, Scale: 4}, &arrow.Decimal256Type{Precision: 60, Scale: 5},
		tString, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
		arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
		&arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
		arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
		&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Berlin"},
		arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.Duration_ns,
		arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthDayNanoInterval,
		dictType(tInt8, tString), dictType(tUint16, tInt64), dictType(tInt32, tFloat64), dictType(tUint, arrow.BinaryTypes.Binary),
		dictType(tUint8, tInt8), dictType(tInt16, tString), dictType(tUint32, tString), dictType(tInt64, tInt32),
		&arrow.DictionaryType{IndexType: tInt16, ValueType: tString, Ordered: true},
		arrow.RunEndEncodedOf(tInt16, tString), arrow.RunEndEncodedOf(tInt32, tInt64), arrow.RunEndEncodedOf(tInt64, tInt8),
		newLabelType(),
	}
}

func nestedTypes() []arrow.DataType {
	return []arrow.DataType{
		arrow.ListOf(tInt32), arrow.LargeListOf(tString), arrow.ListViewOf(tInt16), arrow.LargeListViewOf(tString),
		arrow.FixedSizeListOf(3, tInt16), arrow.ListOf(arrow.ListOf(tString)),
		arrow.StructOf(arrow.Field{Name: "a", Type: tInt32, Nullable: true}, arrow.Field{Name: "b", Type: tString, Nullable: true}),
		arrow.MapOf(tString, tInt64),
		arrow.SparseUnionOf(unionFields, []arrow.UnionTypeCode{0, 1}), arrow.DenseUnionOf(unionFields, []arrow.UnionTypeCode{3, 7}),
		arrow.ListOf(dictType(tInt8, tString)), arrow.ListOf(arrow.FixedWidthTypes.Boolean),
		arrow.FixedSizeListOf(2, arrow.StructOf(arrow.Field{Name: "x", Type: arrow.ListOf(tFloat64), Nullable: true})),
	}
}

func allTypes() []arrow.DataType { return append(flatTypes(), nestedTypes()...) }

// randomValue gives a JSON value that arrow-go reads as a value of dt; nulls
// say whether it may be null.
func randomValue(r *rand.Rand, dt arrow.DataType, nulls bool) any {
	if nulls && r.IntN(5) == 0 {
		return nil
	}
	text := strings.Repeat(string(rune('a'+r.IntN(5))), []int{0, 1, 3, 3, 9, 40}[r.IntN(6)])
	switch dt := dt.(type) {
	case *arrow.NullType:
		return nil
	case *arrow.BooleanType:
		return r.IntN(2) == 0
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return text
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return []byte(text)
	case *arrow.FixedSizeBinaryType:
		return bytes.Repeat([]byte{byte(r.IntN(4))}, dt.ByteWidth)
	case arrow.DecimalType:
		return fmt.Sprintf("%d.%d", r.IntN(1000)-500, r.IntN(10))
	case *arrow.Date32Type, *arrow.Date64Type:
		return fmt.Sprintf("20%02d-03-%02d", r.IntN(50), 1+r.IntN(28))
	case *arrow.Time32Type, *arrow.Time64Type:
		return fmt.Sprintf("%02d:%02d:%02d", r.IntN(24), r.IntN(60), r.IntN(60))
	case *arrow.TimestampType:
		zone := ""
		if dt.TimeZone != "" {
			zone = "Z"
		}
		return fmt.Sprintf("19%02d-03-%02d %02d:00:00%s", 50+r.IntN(50), 1+r.IntN(28), r.IntN(24), zone)
	case *arrow.DurationType:
		return fmt.Sprintf("%d%v", r.IntN(9999), dt.Unit)
	case *arrow.MonthIntervalType:
		return map[string]int{"months": r.IntN(9)}
	case *arrow.DayTimeIntervalType:
		return map[string]int{"days": r.IntN(9), "milliseconds": r.IntN(9)}
	case *arrow.MonthDayNanoIntervalType:
		return map[string]int{"months": r.IntN(9), "days": r.IntN(9), "nanoseconds": r.IntN(9)}
	case *arrow.DictionaryType:
		return randomValue(r, dt.ValueType, nulls)
	case *arrow.RunEndEncodedType:
		return randomValue(r, dt.Encoded(), nulls)
	case *arrow.StructType:
		m := map[string]any{}
		for _, f := range dt.Fields() {
			m[f.Name] = randomValue(r, f.Type, true)
		}
		return m
	case *arrow.MapType:
		list := []any{}
		for i := range r.IntN(3) {
			list = append(list, map[string]any{"key": fmt.Sprint(i), "value": randomValue(r, dt.ItemType(), true)})
		}
		return list
	case *arrow.FixedSizeListType:
		list := []any{}
		for range dt.Len() {
			list = append(list, randomValue(r, dt.Elem(), true))
		}
		return list
	case arrow.ListLikeType:
		list := []any{}
		for range r.IntN(5) {
			list = append(list, randomValue(r, dt.Elem(), true))
		}
		return list
	case arrow.UnionType:
		i := r.IntN(dt.NumFields())
		return []any{dt.TypeCodes()[i], randomValue(r, dt.Fields()[i].Type, true)}
	case arrow.ExtensionType:
		return randomValue(r, dt.StorageType(), nulls)
	default:
		return r.IntN(100)
	}
}

// randomArray gives rows values, as a slice out of a longer array.
func randomArray(t testing.TB, mem memory.Allocator, r *rand.Rand, dt arrow.DataType, rows int) arrow.Array {
	before, after := r.IntN(12), r.IntN(4)
	nulls := r.IntN(3) > 0
	vals := []any{}
	for range before + rows + after {
		vals = append(vals, randomValue(r, dt, nulls && !arrow.IsUnion(dt.ID())))
	}
	text, err := json.Marshal(vals)
	if err != nil {
		t.Fatal(err)
	}
	arr, _, err := array.FromJSON(mem, dt, bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v: %v", dt, err)
	}
	defer arr.Release()
	return array.NewSlice(arr, int64(before), int64(before+rows))
}

func schemaOf(types ...arrow.DataType) *arrow.Schema {
	var fields []arrow.Field
	for i, dt := range types {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: dt, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

func randomBatch(t testing.TB, mem memory.Allocator, r *rand.Rand, schema *arrow.Schema, rows int) arrow.RecordBatch {
	var cols []arrow.Array
	for _, f := range schema.Fields() {
		cols = append(cols, randomArray(t, mem, r, f.Type, rows))
	}
	return batchOf(schema, rows, cols...)
}

// batchOf makes a batch and releases the columns.
func batchOf(schema *arrow.Schema, rows int, cols ...arrow.Array) arrow.RecordBatch {
	b := array.NewRecordBatch(schema, cols, int64(rows))
	for _, c := range cols {
		c.Release()
	}
	return b
}

// rowTexts gives each row as text: the oracle of what a batch holds.
func rowTexts(b arrow.RecordBatch) []string {
	out := make([]string, b.NumRows())
	for i := range out {
		var s strings.Builder
		for _, c := range b.Columns() {
			text, err := json.Marshal(c.GetOneForMarshal(i))
			if err != nil {
				text = []byte(err.Error())
			}
			s.Write(text)
			s.WriteByte('|')
		}
		out[i] = s.String()
	}
	return out
}

// checked gives an allocator that fails the test if anything is left in it.
func checked(t testing.TB) memory.Allocator {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// newResource gives memory that fails the test if any of it is still in use.
func newResource(t testing.TB) *buffer.Resource {
	mem, err := buffer.NewResource(nil, nil, buffer.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mem.Close(); err != nil {
			t.Error(err)
		}
	})
	return mem
}

func newCodec(t testing.TB, schema *arrow.Schema) *Codec {
	c, err := NewCodec(schema)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

var ctx = context.Background()
