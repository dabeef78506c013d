package tables

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden file")

// hashOf gives the hashes of one column, which it releases.
func hashOf(t testing.TB, seed uint64, cols ...arrow.Array) []uint64 {
	var types []arrow.DataType
	var keys []string
	for i, c := range cols {
		types = append(types, c.DataType())
		keys = append(keys, fmt.Sprintf("c%d", i))
	}
	b := batchOf(schemaOf(types...), cols[0].Len(), cols...)
	defer b.Release()
	h, err := NewHasher(b.Schema(), keys, seed)
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.Hash(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fromJSON gives an array of the JSON values in text.
func fromJSON(t testing.TB, dt arrow.DataType, text string) arrow.Array {
	arr, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v %s: %v", dt, text, err)
	}
	return arr
}

func decimalOf(t testing.TB, id arrow.Type, scale int32, v int64) arrow.Array {
	precision := map[arrow.Type]int32{arrow.DECIMAL32: 9, arrow.DECIMAL64: 18, arrow.DECIMAL128: 38, arrow.DECIMAL256: 76}[id]
	dt, err := arrow.NewDecimalType(id, precision, scale)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	switch b := b.(type) {
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(v))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromI64(v))
	default:
		if err := b.AppendValueFromString(decimalText(v, scale)); err != nil {
			t.Fatal(err)
		}
	}
	return b.NewArray()
}

func decimalText(v int64, scale int32) string {
	r := new(big.Rat).SetInt64(v)
	pow := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
	if scale < 0 {
		r.Mul(r, new(big.Rat).SetInt(pow))
	} else {
		r.Quo(r, new(big.Rat).SetInt(pow))
	}
	return r.FloatString(int(max(scale, 0)))
}

func floats(vs ...float64) arrow.Array {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues(vs, nil)
	return b.NewArray()
}

func floats32(vs ...float32) arrow.Array {
	b := array.NewFloat32Builder(memory.DefaultAllocator)
	b.AppendValues(vs, nil)
	return b.NewArray()
}

// golden is one column of values whose hashes are pinned.
type golden struct {
	name string
	arr  arrow.Array
}

func goldens(t testing.TB) []golden {
	var out []golden
	add := func(dt arrow.DataType, text string) {
		out = append(out, golden{fmt.Sprintf("%v %s", dt, text), fromJSON(t, dt, text)})
	}
	add(arrow.Null, `[null]`)
	add(arrow.FixedWidthTypes.Boolean, `[false, true, null]`)
	add(tInt8, `[0, 1, -1, 127, -128]`)
	add(tInt16, `[5, 32767, -32768]`)
	add(tInt32, `[5, 2147483647, -2147483648]`)
	add(tInt64, `[5, null, 9223372036854775807, -9223372036854775808]`)
	add(tUint8, `[5, 255]`)
	add(tUint16, `[5, 65535]`)
	add(tUint32, `[5, 4294967295]`)
	add(tUint, `[5, 9223372036854775808, 18446744073709551615]`)
	add(arrow.FixedWidthTypes.Float16, `[1.5, -2]`)
	add(tFloat32, `[1.5, 16777217]`)
	add(tFloat64, `[0, 1, 1.5, 0.1, -1e300]`)
	out = append(out, golden{"double [-0 NaN NaN' inf -inf]", floats(math.Copysign(0, -1), math.NaN(),
		math.Float64frombits(0xfff8000000000001), math.Inf(1), math.Inf(-1))})
	for _, id := range []arrow.Type{arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256} {
		for _, v := range []int64{0, 500, 123, -5, 12345} {
			out = append(out, golden{fmt.Sprintf("%v %d x 10^-2", id, v), decimalOf(t, id, 2, v)})
		}
	}
	add(&arrow.Decimal128Type{Precision: 38, Scale: 0}, `["9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809", "99999999999999999999999999999999999999"]`)
	add(&arrow.Decimal256Type{Precision: 76, Scale: 10}, `["0.0000000001", "-123456789012345678901234567890.5", "100000000000000000000"]`)
	for _, dt := range []arrow.DataType{tString, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, dictType(tInt8, tString)} {
		add(dt, `["", "a", "ORD", "München", "0123456789abcdef", "0123456789abcdef0", null]`)
	}
	long, err := os.ReadFile("testdata/long.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{33, 129, 241, 1025} {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.Append(string(long[:n]))
		out = append(out, golden{fmt.Sprintf("utf8, first %d bytes of testdata/long.txt", n), b.NewArray()})
	}
	add(&arrow.FixedSizeBinaryType{ByteWidth: 3}, `["AAEC", "T1JE"]`)
	add(arrow.FixedWidthTypes.Date32, `["1970-01-01", "2001-02-03", "1969-12-31"]`)
	add(arrow.FixedWidthTypes.Date64, `["2001-02-03"]`)
	add(arrow.FixedWidthTypes.Timestamp_s, `["2001-02-03 00:00:00Z", "1969-12-31 23:59:59Z"]`)
	add(&arrow.TimestampType{Unit: arrow.Nanosecond}, `["2001-02-03 00:00:00", "2001-02-03 00:00:00.000000001"]`)
	add(&arrow.TimestampType{Unit: arrow.Second}, `[9223372036854775807, -9223372036854775808]`)
	add(arrow.FixedWidthTypes.Time32s, `["12:00:00"]`)
	add(arrow.FixedWidthTypes.Time64ns, `["12:00:00", "12:00:00.000000001"]`)
	add(arrow.FixedWidthTypes.Duration_ms, `["1500ms", "-1ms"]`)
	add(arrow.FixedWidthTypes.MonthInterval, `[{"months": 3}]`)
	add(arrow.FixedWidthTypes.DayTimeInterval, `[{"days": 3, "milliseconds": -4}]`)
	add(arrow.FixedWidthTypes.MonthDayNanoInterval, `[{"months": 3, "days": -2, "nanoseconds": 1}]`)
	return out
}

// TestGolden pins the hash at seed 0 for all versions to come.
func TestGolden(t *testing.T) {
	var got bytes.Buffer
	for _, g := range goldens(t) {
		fmt.Fprintf(&got, "%s:", g.name)
		for _, h := range hashOf(t, 0, g.arr) {
			fmt.Fprintf(&got, " %016x", h)
		}
		got.WriteByte('\n')
	}
	pair := hashOf(t, 0, fromJSON(t, tInt64, `[1, null, 1]`), fromJSON(t, tString, `["a", "a", null]`))
	fmt.Fprintf(&got, "int64 [1, null, 1] then utf8 [\"a\", \"a\", null]: %016x %016x %016x\n", pair[0], pair[1], pair[2])

	const file = "testdata/hash_seed0.golden"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantLines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(wantLines) || line != wantLines[i] {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
}

// TestCanonicalBytes checks what docs/hash.md says with bytes written by hand.
func TestCanonicalBytes(t *testing.T) {
	le := func(v int64) []byte {
		var b [16]byte
		for i := range b {
			b[i] = byte(v >> min(8*i, 63))
		}
		return b[:]
	}
	day := le(86400 * 1e9 * 3)
	tests := []struct {
		name string
		arr  arrow.Array
		want []byte
	}{
		{"int8", fromJSON(t, tInt8, `[-2]`), le(-2)[:8]},
		{"uint64", fromJSON(t, tUint, `[18446744073709551614]`), le(-2)[:8]},
		{"decimal integer", decimalOf(t, arrow.DECIMAL128, 2, -200), le(-2)[:8]},
		{"decimal", decimalOf(t, arrow.DECIMAL256, 5, -1230), append(le(-123)[:8], 0xfc, 0xff, 0xff, 0xff)},
		{"double", floats(1), le(int64(math.Float64bits(1)))[:8]},
		{"NaN", floats(math.NaN()), []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}},
		{"null", fromJSON(t, tInt8, `[null]`), []byte{0xff}},
		{"bool", fromJSON(t, arrow.FixedWidthTypes.Boolean, `[true]`), []byte{1}},
		{"string", fromJSON(t, tString, `["abc"]`), []byte("abc")},
		{"empty", fromJSON(t, tString, `[""]`), nil},
		{"date", fromJSON(t, arrow.FixedWidthTypes.Date32, `["1970-01-04"]`), day},
		{"timestamp", fromJSON(t, arrow.FixedWidthTypes.Timestamp_us, `["1970-01-04 00:00:00Z"]`), day},
		{"duration", fromJSON(t, arrow.FixedWidthTypes.Duration_ns, `["-1ns"]`), le(-1)},
		{"interval", fromJSON(t, arrow.FixedWidthTypes.MonthDayNanoInterval, `[{"months": 1, "days": 2, "nanoseconds": 3}]`),
			[]byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}},
	}
	for _, tt := range tests {
		for _, seed := range []uint64{0, 1, 1 << 63} {
			tt.arr.Retain()
			if got, want := hashOf(t, seed, tt.arr)[0], xxh3.HashSeed(tt.want, seed); got != want {
				t.Errorf("%s, seed %d: %016x, want %016x", tt.name, seed, got, want)
			}
		}
	}
	if got := hashOf(t, 0, fromJSON(t, tString, `[""]`))[0]; got != 0x2d06800538d394c2 {
		t.Errorf("empty input: %x, not what XXH3 is known to give", got)
	}
}

// TestEqualValues: what is equal hashes alike, what is not does not.
func TestEqualValues(t *testing.T) {
	five := []arrow.Array{
		decimalOf(t, arrow.DECIMAL32, 0, 5), decimalOf(t, arrow.DECIMAL64, 2, 500), decimalOf(t, arrow.DECIMAL128, 9, 5e9),
		decimalOf(t, arrow.DECIMAL256, 3, 5000), fromJSON(t, dictType(tInt8, tInt32), `[5]`), fromJSON(t, arrow.RunEndEncodedOf(tInt16, tInt8), `[5]`),
	}
	for _, dt := range []arrow.DataType{tInt8, tInt16, tInt32, tInt64, tUint8, tUint16, tUint32, tUint} {
		five = append(five, fromJSON(t, dt, `[5]`))
	}
	var word, null []arrow.Array
	for _, dt := range []arrow.DataType{
		tString, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, dictType(tInt8, tString), dictType(tUint, tString),
		&arrow.DictionaryType{IndexType: tInt16, ValueType: tString, Ordered: true}, arrow.RunEndEncodedOf(tInt32, tString), newLabelType(),
	} {
		word = append(word, fromJSON(t, dt, `["abc"]`))
	}
	for _, dt := range []arrow.DataType{arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView, &arrow.FixedSizeBinaryType{ByteWidth: 3}} {
		word = append(word, fromJSON(t, dt, `["YWJj"]`))
	}
	for _, dt := range flatTypes() {
		null = append(null, fromJSON(t, dt, `[null]`))
	}
	nullInDict := array.NewDictionaryArray(dictType(tInt8, tString), fromJSON(t, tInt8, `[0]`), fromJSON(t, tString, `[null]`))
	groups := map[string][]arrow.Array{
		"five": five, "word": word, "null": append(null, nullInDict),
		"empty": {fromJSON(t, tString, `[""]`), fromJSON(t, arrow.BinaryTypes.Binary, `[""]`), fromJSON(t, dictType(tInt8, tString), `[""]`)},
		"instant": {
			fromJSON(t, arrow.FixedWidthTypes.Date32, `["2001-02-03"]`), fromJSON(t, arrow.FixedWidthTypes.Date64, `["2001-02-03"]`),
			fromJSON(t, arrow.FixedWidthTypes.Timestamp_s, `["2001-02-03 00:00:00Z"]`), fromJSON(t, arrow.FixedWidthTypes.Timestamp_ms, `["2001-02-03 00:00:00Z"]`),
			fromJSON(t, arrow.FixedWidthTypes.Timestamp_us, `["2001-02-03 00:00:00Z"]`), fromJSON(t, arrow.FixedWidthTypes.Timestamp_ns, `["2001-02-03 00:00:00Z"]`),
			fromJSON(t, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "+01:00"}, `["2001-02-03 01:00:00+01:00"]`),
		},
		"span":     {fromJSON(t, arrow.FixedWidthTypes.Duration_s, `["2s"]`), fromJSON(t, arrow.FixedWidthTypes.Duration_us, `["2000000us"]`)},
		"calendar": {fromJSON(t, arrow.FixedWidthTypes.MonthInterval, `[{"months": 2}]`), fromJSON(t, arrow.FixedWidthTypes.MonthDayNanoInterval, `[{"months": 2, "days": 0, "nanoseconds": 0}]`)},
		"1.5":      {floats(1.5), floats32(1.5), fromJSON(t, arrow.FixedWidthTypes.Float16, `[1.5]`)},
		"zero":     {floats(0), floats(math.Copysign(0, -1)), floats32(float32(math.Copysign(0, -1)))},
		"NaN":      {floats(math.NaN()), floats(math.Float64frombits(0xfff0000000000001)), floats32(math.Float32frombits(0xffc00001))},
	}
	seen := map[uint64]string{}
	for name, arrs := range groups {
		var first uint64
		for i, arr := range arrs {
			dt := arr.DataType()
			h := hashOf(t, 7, arr)[0]
			if i == 0 {
				first = h
			} else if h != first {
				t.Errorf("%s: %v hashes to %x, the first to %x", name, dt, h, first)
			}
		}
		if other, ok := seen[first]; ok {
			t.Errorf("%s and %s hash alike", name, other)
		}
		seen[first] = name
	}
}

func TestSlicesHashAlike(t *testing.T) {
	r, heap := newRand(t), checked(t)
	for _, dt := range flatTypes() {
		arr := randomArray(t, heap, r, dt, 50)
		arr.Retain()
		whole := hashOf(t, 1, arr)
		for _, cut := range []int64{0, 1, 9, 50} {
			if got := hashOf(t, 1, array.NewSlice(arr, cut, 50)); !slices.Equal(got, whole[cut:]) {
				t.Errorf("%v from %d: %x, want %x", dt, cut, got, whole[cut:])
			}
		}
		arr.Release()
	}
}

func TestKeyOrderAndSeedMatter(t *testing.T) {
	a, b := fromJSON(t, tInt32, `[1]`), fromJSON(t, tInt32, `[2]`)
	seen := map[uint64]bool{}
	for _, seed := range []uint64{0, 1} {
		for _, cols := range [][]arrow.Array{{a}, {b}, {a, b}, {b, a}, {a, a}} {
			for _, c := range cols {
				c.Retain()
			}
			seen[hashOf(t, seed, cols...)[0]] = true
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d different hashes of 10", len(seen))
	}
}

// TestInstantsNeverOverflow compares with arithmetic of any size.
func TestInstantsNeverOverflow(t *testing.T) {
	h := newHashCore(0)
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Int64().Draw(t, "v")
		unit := rapid.SampledFrom(arrow.TimeUnitValues).Draw(t, "unit").Multiplier()
		var got [1]uint64
		hashNanos(&h, []int64{v}, unit, got[:])
		if want := xxh3.Hash(littleEndian(new(big.Int).Mul(big.NewInt(v), big.NewInt(int64(unit))), 16)); got[0] != want {
			t.Fatalf("%x, want %x", got[0], want)
		}
	})
}

// littleEndian gives v in two's complement of n bytes.
func littleEndian(v *big.Int, n int) []byte {
	m := new(big.Int).Lsh(big.NewInt(1), uint(8*n))
	b := m.Mod(v, m).FillBytes(make([]byte, n))
	slices.Reverse(b)
	return b
}

// TestDecimalsByValue compares with the rule of docs/hash.md in arithmetic of
// any size, from every width that holds the number.
func TestDecimalsByValue(t *testing.T) {
	h := newHashCore(0)
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`-?[1-9][0-9]{0,30}0{0,40}`).Draw(t, "digits")
		scale := rapid.IntRange(-40, 40).Draw(t, "scale")
		v, _ := new(big.Int).SetString(digits, 10)
		want := xxh3.Hash(canonicalDecimal(v, scale))
		if v.IsInt64() {
			if got := h.decimal64(v.Int64(), scale); got != want {
				t.Fatalf("64 bits: %x, want %x", got, want)
			}
		}
		if got := h.decimal256(decimal256.FromBigInt(v).Array(), scale); got != want {
			t.Fatalf("256 bits: %x, want %x", got, want)
		}
	})
}

func canonicalDecimal(v *big.Int, scale int) []byte {
	ten, u := big.NewInt(10), new(big.Int).Set(v)
	for new(big.Int).Rem(u, ten).Sign() == 0 {
		u.Quo(u, ten)
		scale--
	}
	if scale <= 0 {
		n := new(big.Int).Mul(u, new(big.Int).Exp(ten, big.NewInt(int64(-scale)), nil))
		if n.IsInt64() || n.IsUint64() {
			return littleEndian(n, 8)
		}
	}
	size := 32
	if u.IsInt64() {
		size = 8
	}
	return append(littleEndian(u, size), littleEndian(big.NewInt(int64(-scale)), 4)...)
}
