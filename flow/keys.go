package flow

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// encoder appends value i of an array to a key so that equal values, and only
// they, have equal bytes. Values of variable length are preceded by it.
type encoder func(key []byte, i int) []byte

// hashable tells whether a plain type can be a key.
func hashable(typ arrow.DataType) bool {
	_, fixed := typ.(arrow.FixedWidthDataType)
	switch typ.ID() {
	case arrow.NULL, arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return true
	case arrow.FIXED_SIZE_LIST:
		return false
	}
	return fixed
}

func encoderOf(arr arrow.Array) encoder {
	switch a := arr.(type) {
	case *array.Null:
		return nil // every row is null, none is encoded
	case *array.Boolean:
		return func(key []byte, i int) []byte {
			if a.Value(i) {
				return append(key, 1)
			}
			return append(key, 0)
		}
	case *array.Float64:
		return func(key []byte, i int) []byte {
			return binary.NativeEndian.AppendUint64(key, math.Float64bits(canonical(a.Value(i))))
		}
	case *array.Float32:
		return func(key []byte, i int) []byte {
			return binary.NativeEndian.AppendUint32(key, math.Float32bits(float32(canonical(float64(a.Value(i))))))
		}
	case *array.Float16:
		return func(key []byte, i int) []byte {
			v := float16.New(float32(canonical(float64(a.Value(i).Float32()))))
			return binary.NativeEndian.AppendUint16(key, v.Uint16())
		}
	case textValues:
		return func(key []byte, i int) []byte {
			v := a.Value(i)
			return append(binary.AppendUvarint(key, uint64(len(v))), v...)
		}
	case byteValues:
		if arr.DataType().ID() != arrow.FIXED_SIZE_BINARY {
			return func(key []byte, i int) []byte {
				v := a.Value(i)
				return append(binary.AppendUvarint(key, uint64(len(v))), v...)
			}
		}
	}
	width := fixedWidth(arr.DataType())
	var raw []byte
	if buf := arr.Data().Buffers()[1]; buf != nil {
		raw = buf.Bytes()[arr.Data().Offset()*width:]
	}
	return func(key []byte, i int) []byte { return append(key, raw[i*width:(i+1)*width]...) }
}

// canonical returns the one value that stands for v as a key.
func canonical(v float64) float64 {
	switch {
	case v != v:
		return math.NaN()
	case v == 0:
		return 0
	}
	return v
}

// fixedWidth returns the bytes of one encoded value, -1 if they vary.
func fixedWidth(typ arrow.DataType) int {
	switch t := typ.(type) {
	case *arrow.NullType:
		return 0
	case *arrow.BooleanType:
		return 1
	case arrow.FixedWidthDataType:
		return t.BitWidth() / 8
	}
	return -1
}

// keyStore collects the values of one key column, one per group.
type keyStore struct {
	typ   arrow.DataType
	width int // as fixedWidth
	seen  []bool
	data  []byte
	ends  []int64 // of each value in data, where the width varies
}

func newKeyStore(typ arrow.DataType) *keyStore {
	return &keyStore{typ: typ, width: fixedWidth(typ)}
}

// add takes one value off an encoded key and returns the rest.
func (s *keyStore) add(key []byte) []byte {
	valid := key[0] == 1
	key = key[1:]
	s.seen = append(s.seen, valid)
	if s.width >= 0 {
		if !valid {
			s.data = append(s.data, make([]byte, s.width)...)
			return key
		}
		s.data = append(s.data, key[:s.width]...)
		return key[s.width:]
	}
	if valid {
		n, used := binary.Uvarint(key)
		s.data = append(s.data, key[used:used+int(n)]...)
		key = key[used+int(n):]
	}
	s.ends = append(s.ends, int64(len(s.data)))
	return key
}

// array returns the n values.
func (s *keyStore) array(n int) (arrow.Array, error) {
	switch {
	case s.typ.ID() == arrow.NULL:
		return array.MakeArrayOfNull(memory.DefaultAllocator, s.typ, n), nil
	case s.typ.ID() == arrow.BOOL:
		b := array.NewBooleanBuilder(memory.DefaultAllocator)
		defer b.Release()
		for i, v := range s.data {
			if s.seen[i] {
				b.Append(v == 1)
			} else {
				b.AppendNull()
			}
		}
		return b.NewArray(), nil
	case s.width >= 0:
		validity, nulls := bitmap(s.seen)
		data := array.NewData(s.typ, n, []*memory.Buffer{validity, memory.NewBufferBytes(append([]byte(nil), s.data...))}, nil, nulls, 0)
		defer data.Release()
		return array.MakeFromData(data), nil
	}
	return s.texts()
}

func (s *keyStore) texts() (arrow.Array, error) {
	if id := s.typ.ID(); len(s.data) > math.MaxInt32 && (id == arrow.STRING || id == arrow.BINARY) {
		return nil, fmt.Errorf("%w: more than 2 GiB of distinct %s values", ErrOverflow, s.typ)
	}
	b := array.NewBuilder(memory.DefaultAllocator, s.typ)
	defer b.Release()
	var start int64
	for i, end := range s.ends {
		appendBytes(b, s.data[start:end], s.seen[i])
		start = end
	}
	return b.NewArray(), nil
}

// appendBytes appends to a builder of any string or binary type.
func appendBytes(b array.Builder, value []byte, valid bool) {
	switch b := b.(type) {
	case array.StringLikeBuilder:
		if valid {
			b.Append(string(value))
			return
		}
	case array.BinaryLikeBuilder:
		if valid {
			b.Append(value)
			return
		}
	}
	b.AppendNull()
}
