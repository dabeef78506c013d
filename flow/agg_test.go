package flow

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

func TestParseAggs(t *testing.T) {
	got, err := ParseAggs("count, sum(distance),min(a b),count(x)")
	want := []Agg{{Count, ""}, {Sum, "distance"}, {Min, "a b"}, {Count, "x"}}
	if err != nil || !reflect.DeepEqual(got, want) || got[1].String() != "sum(distance)" || got[0].String() != "count" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "sum", "sum()", "sum(a", "avg(a)", "count()", "suma)", "count,count", "count,"} {
		if got, err := ParseAggs(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	if got := Needed([]string{"k", "k", "j"}, want); !reflect.DeepEqual(got, []string{"k", "j", "distance", "a b", "x"}) {
		t.Error(got)
	}
}

// result aggregates and returns the rows in their final order.
func result(t *testing.T, keys []string, aggs string, batches ...arrow.RecordBatch) []string {
	t.Helper()
	list, err := ParseAggs(aggs)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAggregate(batches[0].Schema(), keys, list)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := a.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	part, err := a.Result()
	if err != nil {
		t.Fatal(err)
	}
	defer part.Release()
	if int(part.NumRows()) != a.Groups() {
		t.Fatalf("%d rows of %d groups", part.NumRows(), a.Groups())
	}
	g, err := MergeGroups(len(keys), []arrow.RecordBatch{part})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Release()
	var out strings.Builder
	if err := g.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

var (
	i8, i32, i64  = arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64
	u8, u64       = arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint64
	f32, f64      = arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64
	text          = arrow.BinaryTypes.String
	boolean       = arrow.FixedWidthTypes.Boolean
	day           = arrow.FixedWidthTypes.Date32
	micros        = &arrow.TimestampType{Unit: arrow.Microsecond}
	dec5, dec38   = &arrow.Decimal128Type{Precision: 5, Scale: 2}, &arrow.Decimal128Type{Precision: 38}
	dict          = &arrow.DictionaryType{IndexType: i8, ValueType: text}
	names         = []string{"b", "a", "null", "b", "a", "b"}
	six           = []string{"1", "2", "3", "4", "null", "6"}
	negative, one = []string{"-1", "-2", "null", "-3", "null", "-120"}, []string{"1", "1", "1", "1", "1", "1"}
)

func TestAggregates(t *testing.T) {
	for name, c := range map[string]struct {
		batch arrow.RecordBatch
		keys  string
		aggs  string
		want  []string
	}{
		"text key, null group": {build(t, "k", text, names, "v", i64, six), "k", "count,sum(v),min(v),max(v),count(v)",
			[]string{"k,count,sum(v),min(v),max(v),count(v)", "b,3,11,1,6,3", "a,2,2,2,2,1", ",1,3,3,3,1"}},
		"all null is null": {build(t, "k", text, names, "v", i8, negative), "k", "sum(v),max(v)",
			[]string{"k,count,sum(v),max(v)", "b,3,-124,-1", "a,2,-2,-2", ",1,,"}},
		"dictionary key and value": {build(t, "k", dict, names, "v", dict, []string{"x", "y", "z", "null", "w", "a"}), "k", "min(v),max(v)",
			[]string{"k,count,min(v),max(v)", "b,3,a,x", "a,2,w,y", ",1,z,z"}},
		"two keys": {build(t, "k", text, names, "j", boolean, []string{"true", "true", "true", "false", "true", "true"}), "k,j", "count",
			[]string{"k,j,count", "a,true,2", "b,true,2", "b,false,1", ",true,1"}},
		"unsigned": {build(t, "k", u8, one, "v", u64, []string{"18446744073709551614", "1", "0", "0", "null", "0"}), "k", "sum(v),max(v)",
			[]string{"k,count,sum(v),max(v)", "1,6,18446744073709551615,18446744073709551614"}},
		"float zeros and NaN are one key each": {build(t, "k", f64, []string{"0", "-0", "NaN", "NaN", "1", "null"}, "v", f32, []string{"1", "2.5", "3", "NaN", "5", "6"}), "k", "sum(v),min(v),max(v)",
			[]string{"k,count,sum(v),min(v),max(v)", "0,2,3.5,1,2.5", "NaN,2,NaN,3,NaN", "1,1,5,5,5", ",1,6,6,6"}},
		"decimals": {build(t, "k", dec5, []string{"1.5", "1.50", "-2.25", "1.5", "-2.25", "1.5"}, "v", dec5, []string{"999.99", "999.99", "0.01", "999.99", "-0.02", "999.99"}), "k", "sum(v),min(v),max(v)",
			[]string{"k,count,sum(v),min(v),max(v)", "1.5,4,3999.96,999.99,999.99", "-2.25,2,-0.01,-0.02,0.01"}},
		"times": {build(t, "k", day, []string{"2020-01-01", "2020-01-01", "1969-12-31", "2020-01-01", "1969-12-31", "2020-01-01"}, "v", micros,
			[]string{"2020-01-01 00:00:00.5", "2019-01-01 10:00:00", "null", "null", "1950-06-01 00:00:00", "null"}), "k", "min(v),max(v)",
			[]string{"k,count,min(v),max(v)", "2020-01-01,4,2019-01-01T10:00:00,2020-01-01T00:00:00.5", "1969-12-31,2,1950-06-01T00:00:00,1950-06-01T00:00:00"}},
		"booleans and empty text": {build(t, "k", i32, one, "v", boolean, []string{"true", "false", "null", "true", "true", "true"}, "w", text, []string{"x", "", "y", "null", "z", "z"}), "k", "min(v),max(v),min(w),max(w)",
			[]string{"k,count,min(v),max(v),min(w),max(w)", "1,6,false,true,,z"}},
	} {
		for _, cut := range []int64{0, 1, 3} { // slices have offsets
			n := c.batch.NumRows()
			got := result(t, strings.Split(c.keys, ","), c.aggs, c.batch.NewSlice(0, cut), c.batch.NewSlice(cut, n))
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, cut at %d:\n got %q\nwant %q", name, cut, got, c.want)
			}
		}
	}
}

// Every type that can be a key comes back as it was, null as null.
func TestKeysOfEveryType(t *testing.T) {
	for _, c := range []struct {
		typ    arrow.DataType
		values []string
	}{
		{i8, []string{"-128", "127"}}, {arrow.PrimitiveTypes.Uint16, []string{"0", "65535"}}, {f32, []string{"1.5", "-Inf"}},
		{arrow.FixedWidthTypes.Float16, []string{"1.5", "-2"}}, {text, []string{"", "ü"}}, {arrow.BinaryTypes.LargeString, []string{"", "x"}},
		{arrow.BinaryTypes.Binary, []string{"", "eHg="}}, {arrow.BinaryTypes.StringView, []string{"short", "a text longer than a view holds"}},
		{&arrow.FixedSizeBinaryType{ByteWidth: 2}, []string{"eHg=", "eHk="}}, {boolean, []string{"true", "false"}}, {day, []string{"2020-02-29", "1900-01-01"}},
		{arrow.FixedWidthTypes.Time64us, []string{"10:00:00.000001", "00:00:00"}}, {micros, []string{"2020-01-01 00:00:00", "1950-01-01 00:00:00"}},
		{arrow.FixedWidthTypes.Duration_ns, []string{"5ns", "1ns"}}, {dec38, []string{"-99999999999999999999999999999999999999", "1"}},
		{&arrow.Decimal256Type{Precision: 70, Scale: 3}, []string{"1.001", "-2"}}, {&arrow.Decimal32Type{Precision: 5, Scale: 1}, []string{"1.1", "-2"}},
		{arrow.Null, nil}, {dict, []string{"a", "b"}},
	} {
		values := append([]string{"null"}, c.values...)
		batch := build(t, "k", c.typ, append(append([]string{}, values...), values...))
		a, err := NewAggregate(batch.Schema(), []string{"k"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Add(batch); err != nil {
			t.Fatal(err)
		}
		res, err := a.Result()
		if err != nil || int(res.NumRows()) != len(values) {
			t.Fatalf("%s: %v, %v", c.typ, res, err)
		}
		for i := range values {
			want := batch.Column(0)
			if got := res.Column(0); Text(got, i) != Text(want, i) || isNull(got, i) != (i == 0) {
				t.Errorf("%s: group %d is %q, want %q", c.typ, i, Text(got, i), Text(want, i))
			}
		}
		if g, err := MergeGroups(1, []arrow.RecordBatch{res, res.NewSlice(0, 0)}); err != nil || g.Order[len(values)-1] != 0 {
			t.Errorf("%s: null does not come last: %v", c.typ, err)
		}
	}
}

func TestSumOverflow(t *testing.T) {
	max64, min64 := "9223372036854775807", "-9223372036854775808"
	max38 := strings.Repeat("9", 38)
	for name, c := range map[string]struct {
		typ      arrow.DataType
		values   []string
		overflow bool
	}{
		"int64 up":      {i64, []string{max64, "1"}, true},
		"int64 down":    {i64, []string{min64, "-1"}, true},
		"int64 between": {i64, []string{max64, min64, "1", "0"}, false},
		"uint64":        {u64, []string{"18446744073709551615", "1"}, true},
		"decimal":       {dec38, []string{max38, "1"}, true},
		"decimal back":  {dec38, []string{max38, "-1", "1"}, false},
		"decimal256":    {&arrow.Decimal256Type{Precision: 76}, []string{max38 + max38, "1"}, true},
	} {
		keys := make([]string, len(c.values))
		batch := build(t, "k", text, keys, "v", c.typ, c.values)
		a, err := NewAggregate(batch.Schema(), []string{"k"}, []Agg{{Sum, "v"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Add(batch); errors.Is(err, ErrOverflow) != c.overflow || (err != nil) != c.overflow {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAggregateRefuses(t *testing.T) {
	list := arrow.ListOf(i64)
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: text}, {Name: "l", Type: list}, {Name: "t", Type: micros},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: i64})}, {Name: "d", Type: &arrow.DictionaryType{IndexType: i8, ValueType: list}}}, nil)
	for _, c := range []struct {
		keys string
		agg  Agg
		want error
	}{
		{"nobody", Agg{Count, ""}, ErrNoColumn}, {"k", Agg{Sum, "nobody"}, ErrNoColumn},
		{"l", Agg{Count, ""}, ErrType}, {"s", Agg{Count, ""}, ErrType}, {"d", Agg{Count, ""}, ErrType},
		{"k", Agg{Sum, "k"}, ErrType}, {"k", Agg{Sum, "t"}, ErrType}, {"k", Agg{Min, "l"}, ErrType},
	} {
		if _, err := NewAggregate(schema, []string{c.keys}, []Agg{c.agg}); !errors.Is(err, c.want) {
			t.Errorf("key %s, %s: %v", c.keys, c.agg, err)
		}
	}
	if _, err := NewAggregate(schema, nil, nil); err == nil {
		t.Error("no key is accepted")
	}
}

func TestJSONValues(t *testing.T) {
	b := build(t, "i", i64, []string{"9007199254740993", "null"}, "f", f64, []string{"0.5", "NaN"}, "b", boolean, []string{"true", "null"}, "s", text, []string{"x", ""})
	var got []any
	for _, col := range b.Columns() {
		got = append(got, JSON(col, 0), JSON(col, 1))
	}
	if text := fmt.Sprint(got); text != `[9007199254740993 <nil> 0.5 NaN true <nil> x ]` {
		t.Error(text)
	}
	if v := JSON(b.Column(1), 0); v != 0.5 || math.IsNaN(v.(float64)) {
		t.Error(v)
	}
}
