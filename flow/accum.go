package flow

import (
	"cmp"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// countValues counts what is not null.
type countValues struct{ n []int64 }

func (c *countValues) grow(groups int) { c.n = grown(c.n, groups) }

func (c *countValues) add(groups []uint32, col *cells) error {
	for r, at := range col.at {
		if at >= 0 {
			c.n[groups[r]]++
		}
	}
	return nil
}

func (c *countValues) array() arrow.Array {
	return fixedArray(arrow.PrimitiveTypes.Int64, append([]int64(nil), c.n...), nil)
}

func grown[T any](s []T, n int) []T {
	if n > len(s) {
		s = append(s, make([]T, n-len(s))...)
	}
	return s
}

// fold combines the values of each group: T as stored in the column, A as kept.
type fold[T, A any] struct {
	typ    arrow.DataType // of the result
	values func(arrow.Array) func(i int) T
	first  func(v T) A
	merge  func(a A, v T) (A, error)
	build  func(typ arrow.DataType, kept []A, seen []bool) arrow.Array
	kept   []A
	seen   []bool
}

func (f *fold[T, A]) grow(groups int) {
	f.kept, f.seen = grown(f.kept, groups), grown(f.seen, groups)
}

func (f *fold[T, A]) add(groups []uint32, col *cells) error {
	value := f.values(col.values)
	for r, at := range col.at {
		if at < 0 {
			continue
		}
		g, v := groups[r], value(int(at))
		if !f.seen[g] {
			f.seen[g], f.kept[g] = true, f.first(v)
			continue
		}
		var err error
		if f.kept[g], err = f.merge(f.kept[g], v); err != nil {
			return err
		}
	}
	return nil
}

func (f *fold[T, A]) array() arrow.Array {
	return f.build(f.typ, append([]A(nil), f.kept...), f.seen)
}

// fixedValues reads the values of an array whose items are T in memory.
func fixedValues[T arrow.FixedWidthType](arr arrow.Array) func(i int) T {
	values := arrow.GetValues[T](arr.Data(), 1)
	return func(i int) T { return values[i] }
}

// newSum returns the accumulator of sum, nil if the type has none. Signed
// integers add up as int64, unsigned as uint64, decimals with all digits their
// widest type has.
func newSum(typ arrow.DataType) accumulator {
	switch typ.ID() {
	case arrow.INT8:
		return sumInt[int8](arrow.PrimitiveTypes.Int64)
	case arrow.INT16:
		return sumInt[int16](arrow.PrimitiveTypes.Int64)
	case arrow.INT32:
		return sumInt[int32](arrow.PrimitiveTypes.Int64)
	case arrow.INT64:
		return sumInt[int64](arrow.PrimitiveTypes.Int64)
	case arrow.DURATION:
		return sumInt[int64](typ)
	case arrow.UINT8:
		return sumUint[uint8]()
	case arrow.UINT16:
		return sumUint[uint16]()
	case arrow.UINT32:
		return sumUint[uint32]()
	case arrow.UINT64:
		return sumUint[uint64]()
	case arrow.FLOAT32:
		return sumFloat[float32]()
	case arrow.FLOAT64:
		return sumFloat[float64]()
	}
	if dec, ok := typ.(arrow.DecimalType); ok {
		return sumDecimal(dec)
	}
	return nil
}

func sumInt[T arrow.IntType](typ arrow.DataType) accumulator {
	return &fold[T, int64]{
		typ: typ, values: fixedValues[T], build: fixedArray[int64],
		first: func(v T) int64 { return int64(v) },
		merge: func(a int64, v T) (int64, error) {
			s := a + int64(v)
			if (s > a) != (v > 0) && v != 0 {
				return 0, ErrOverflow
			}
			return s, nil
		},
	}
}

func sumUint[T arrow.UintType]() accumulator {
	return &fold[T, uint64]{
		typ: arrow.PrimitiveTypes.Uint64, values: fixedValues[T], build: fixedArray[uint64],
		first: func(v T) uint64 { return uint64(v) },
		merge: func(a uint64, v T) (uint64, error) {
			if a+uint64(v) < a {
				return 0, ErrOverflow
			}
			return a + uint64(v), nil
		},
	}
}

func sumFloat[T float32 | float64]() accumulator {
	return &fold[T, float64]{
		typ: arrow.PrimitiveTypes.Float64, values: fixedValues[T], build: fixedArray[float64],
		first: func(v T) float64 { return float64(v) },
		merge: func(a float64, v T) (float64, error) { return a + float64(v), nil },
	}
}

// sumDecimal keeps 256 bits, which no single addition overflows, and checks each
// sum against the precision of the result.
func sumDecimal(typ arrow.DecimalType) accumulator {
	switch typ.ID() {
	case arrow.DECIMAL32:
		return decimalSum(typ, func(v decimal.Decimal32) decimal256.Num { return decimal256.FromI64(int64(v)) })
	case arrow.DECIMAL64:
		return decimalSum(typ, func(v decimal.Decimal64) decimal256.Num { return decimal256.FromI64(int64(v)) })
	case arrow.DECIMAL128:
		return decimalSum(typ, decimal256.FromDecimal128)
	case arrow.DECIMAL256:
		return decimalSum(typ, func(v decimal.Decimal256) decimal256.Num { return v })
	}
	return nil
}

func decimalSum[T decimal.DecimalTypes](typ arrow.DecimalType, widen func(T) decimal256.Num) accumulator {
	var result arrow.DecimalType = &arrow.Decimal128Type{Precision: 38, Scale: typ.GetScale()}
	if typ.ID() == arrow.DECIMAL256 {
		result = &arrow.Decimal256Type{Precision: 76, Scale: typ.GetScale()}
	}
	return &fold[T, decimal256.Num]{
		typ: result, values: fixedValues[T], build: decimalArray, first: widen,
		merge: func(a decimal256.Num, v T) (decimal256.Num, error) {
			a = a.Add(widen(v))
			if !a.FitsInPrecision(result.GetPrecision()) {
				return a, ErrOverflow
			}
			return a, nil
		},
	}
}

func decimalArray(typ arrow.DataType, kept []decimal256.Num, seen []bool) arrow.Array {
	if typ.ID() == arrow.DECIMAL256 {
		return fixedArray(typ, kept, seen)
	}
	narrow := make([]decimal128.Num, len(kept))
	for i, v := range kept {
		words := v.Array() // lowest first; the upper two repeat the sign
		narrow[i] = decimal128.New(int64(words[1]), words[0])
	}
	return fixedArray(typ, narrow, seen)
}

// newExtreme returns the accumulator of min or max, nil if the type has no order.
func newExtreme(typ arrow.DataType, largest bool) accumulator {
	switch typ.ID() {
	case arrow.INT8:
		return extremeNumber[int8](typ, largest)
	case arrow.INT16:
		return extremeNumber[int16](typ, largest)
	case arrow.INT32, arrow.DATE32, arrow.TIME32:
		return extremeNumber[int32](typ, largest)
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return extremeNumber[int64](typ, largest)
	case arrow.UINT8:
		return extremeNumber[uint8](typ, largest)
	case arrow.UINT16:
		return extremeNumber[uint16](typ, largest)
	case arrow.UINT32:
		return extremeNumber[uint32](typ, largest)
	case arrow.UINT64:
		return extremeNumber[uint64](typ, largest)
	case arrow.FLOAT32:
		return extremeNumber[float32](typ, largest)
	case arrow.FLOAT64:
		return extremeNumber[float64](typ, largest)
	case arrow.DECIMAL32:
		return extreme(typ, largest, fixedValues[decimal.Decimal32], less[decimal.Decimal32], fixedArray)
	case arrow.DECIMAL64:
		return extreme(typ, largest, fixedValues[decimal.Decimal64], less[decimal.Decimal64], fixedArray)
	case arrow.DECIMAL128:
		return extreme(typ, largest, fixedValues[decimal.Decimal128], decimal.Decimal128.Less, fixedArray)
	case arrow.DECIMAL256:
		return extreme(typ, largest, fixedValues[decimal.Decimal256], decimal.Decimal256.Less, fixedArray)
	case arrow.BOOL:
		values := func(arr arrow.Array) func(int) bool { return arr.(*array.Boolean).Value }
		return extreme(typ, largest, values, func(a, b bool) bool { return !a && b }, boolArray)
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return extremeText(typ, largest)
	}
	return nil
}

type number interface {
	arrow.IntType | arrow.UintType | float32 | float64
}

func extremeNumber[T number](typ arrow.DataType, largest bool) accumulator {
	return extreme(typ, largest, fixedValues[T], less[T], fixedArray)
}

// less puts NaN after all numbers.
func less[T cmp.Ordered](a, b T) bool { return a < b || (b != b && a == a) }

func extreme[T any](typ arrow.DataType, largest bool, values func(arrow.Array) func(int) T, less func(a, b T) bool,
	build func(arrow.DataType, []T, []bool) arrow.Array) accumulator {
	return &fold[T, T]{
		typ: typ, values: values, build: build,
		first: func(v T) T { return v },
		merge: func(a, v T) (T, error) {
			if largest && less(a, v) || !largest && less(v, a) {
				return v, nil
			}
			return a, nil
		},
	}
}

// extremeText orders by bytes, which for UTF-8 is the order of code points. The
// batch goes away, so what is kept is copied.
func extremeText(typ arrow.DataType, largest bool) accumulator {
	return &fold[string, string]{
		typ: typ, values: textOf, build: textArray,
		first: strings.Clone,
		merge: func(a, v string) (string, error) {
			if largest && v > a || !largest && v < a {
				return strings.Clone(v), nil
			}
			return a, nil
		},
	}
}

// textValues and byteValues are the arrays of strings and of bytes.
type (
	textValues interface{ Value(i int) string }
	byteValues interface{ Value(i int) []byte }
)

func textOf(arr arrow.Array) func(i int) string {
	if a, ok := arr.(byteValues); ok {
		return func(i int) string { return string(a.Value(i)) }
	}
	return arr.(textValues).Value
}

func textArray(typ arrow.DataType, kept []string, seen []bool) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	defer b.Release()
	for i, v := range kept {
		appendBytes(b, []byte(v), seen[i])
	}
	return b.NewArray()
}

func boolArray(_ arrow.DataType, kept, seen []bool) arrow.Array {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(kept, seen)
	return b.NewArray()
}
