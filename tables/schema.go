package tables

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// A schema is encoded as the number of its fields and the fields; a field as
// its name, a byte that is 1 if it may hold nulls, and its type; a type as its
// Arrow type number and its parameters. Numbers are uvarints, strings have
// their length before them. Metadata is left out: it has no part in the layout
// and differs between files of one data set.

func encodeSchema(s *arrow.Schema) ([]byte, error) {
	return encodeFields(nil, s.Fields())
}

func encodeFields(b []byte, fields []arrow.Field) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, f := range fields {
		var err error
		if b, err = encodeField(b, f); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func encodeField(b []byte, f arrow.Field) ([]byte, error) {
	b = appendString(b, f.Name)
	b = append(b, boolByte(f.Nullable))
	b, err := encodeType(b, f.Type)
	if err != nil {
		return nil, fmt.Errorf("field %q: %w", f.Name, err)
	}
	return b, nil
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func encodeType(b []byte, dt arrow.DataType) ([]byte, error) {
	b = append(b, byte(dt.ID()))
	switch dt := dt.(type) {
	case *arrow.FixedSizeBinaryType:
		return binary.AppendUvarint(b, uint64(dt.ByteWidth)), nil
	case *arrow.TimestampType:
		return appendString(append(b, byte(dt.Unit)), dt.TimeZone), nil
	case arrow.TemporalWithUnit:
		return append(b, byte(dt.TimeUnit())), nil
	case arrow.DecimalType:
		b = binary.AppendUvarint(b, uint64(dt.GetPrecision()))
		return binary.AppendVarint(b, int64(dt.GetScale())), nil
	case *arrow.MapType:
		return encodeFields(append(b, boolByte(dt.KeysSorted)), dt.Elem().(*arrow.StructType).Fields())
	case *arrow.FixedSizeListType:
		return encodeFields(binary.AppendUvarint(b, uint64(dt.Len())), dt.Fields())
	case *arrow.DictionaryType:
		b, err := encodeType(append(b, boolByte(dt.Ordered)), dt.IndexType)
		if err != nil {
			return nil, err
		}
		return encodeType(b, dt.ValueType)
	case *arrow.RunEndEncodedType:
		b, err := encodeType(b, dt.RunEnds())
		if err != nil {
			return nil, err
		}
		return encodeType(b, dt.Encoded())
	case arrow.UnionType:
		for _, c := range dt.TypeCodes() {
			b = append(b, byte(c))
		}
		return encodeFields(append(b, 0xff), dt.Fields())
	case arrow.ExtensionType:
		b = appendString(appendString(b, dt.ExtensionName()), dt.Serialize())
		return encodeType(b, dt.StorageType())
	case arrow.NestedType:
		return encodeFields(b, dt.Fields())
	}
	if _, ok := plainTypes[dt.ID()]; !ok {
		return nil, fmt.Errorf("type %v is not supported", dt)
	}
	return b, nil
}

// plainTypes are the types without parameters.
var plainTypes = map[arrow.Type]arrow.DataType{
	arrow.NULL: arrow.Null, arrow.BOOL: arrow.FixedWidthTypes.Boolean,
	arrow.INT8: arrow.PrimitiveTypes.Int8, arrow.UINT8: arrow.PrimitiveTypes.Uint8,
	arrow.INT16: arrow.PrimitiveTypes.Int16, arrow.UINT16: arrow.PrimitiveTypes.Uint16,
	arrow.INT32: arrow.PrimitiveTypes.Int32, arrow.UINT32: arrow.PrimitiveTypes.Uint32,
	arrow.INT64: arrow.PrimitiveTypes.Int64, arrow.UINT64: arrow.PrimitiveTypes.Uint64,
	arrow.FLOAT16: arrow.FixedWidthTypes.Float16,
	arrow.FLOAT32: arrow.PrimitiveTypes.Float32, arrow.FLOAT64: arrow.PrimitiveTypes.Float64,
	arrow.STRING: arrow.BinaryTypes.String, arrow.BINARY: arrow.BinaryTypes.Binary,
	arrow.LARGE_STRING: arrow.BinaryTypes.LargeString, arrow.LARGE_BINARY: arrow.BinaryTypes.LargeBinary,
	arrow.STRING_VIEW: arrow.BinaryTypes.StringView, arrow.BINARY_VIEW: arrow.BinaryTypes.BinaryView,
	arrow.DATE32: arrow.PrimitiveTypes.Date32, arrow.DATE64: arrow.PrimitiveTypes.Date64,
	arrow.INTERVAL_MONTHS:         arrow.FixedWidthTypes.MonthInterval,
	arrow.INTERVAL_DAY_TIME:       arrow.FixedWidthTypes.DayTimeInterval,
	arrow.INTERVAL_MONTH_DAY_NANO: arrow.FixedWidthTypes.MonthDayNanoInterval,
}

// decodeSchema reads what encodeSchema wrote. Of an extension type it gives
// the storage type: what the extension means is not for a peer to say.
func decodeSchema(b []byte) (*arrow.Schema, error) {
	d := &schemaReader{rest: b}
	fields, err := d.fields(0)
	if err != nil {
		return nil, err
	}
	if len(d.rest) > 0 {
		return nil, fmt.Errorf("%d bytes after the schema", len(d.rest))
	}
	return arrow.NewSchema(fields, nil), nil
}

type schemaReader struct{ rest []byte }

var errSchemaShort = errors.New("schema ends early")

func (d *schemaReader) byte() (byte, error) {
	if len(d.rest) == 0 {
		return 0, errSchemaShort
	}
	v := d.rest[0]
	d.rest = d.rest[1:]
	return v, nil
}

func (d *schemaReader) bool() (bool, error) {
	v, err := d.byte()
	if err == nil && v > 1 {
		err = fmt.Errorf("%d is no truth value", v)
	}
	return v == 1, err
}

// number reads a number up to limit.
func (d *schemaReader) number(limit uint64) (int, error) {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		return 0, errSchemaShort
	}
	if v > limit {
		return 0, fmt.Errorf("%d where at most %d is possible", v, limit)
	}
	d.rest = d.rest[n:]
	return int(v), nil
}

func (d *schemaReader) string() (string, error) {
	n, err := d.number(uint64(len(d.rest)))
	if err != nil {
		return "", err
	}
	if n > len(d.rest) {
		return "", errSchemaShort
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s, nil
}

func (d *schemaReader) fields(depth int) ([]arrow.Field, error) {
	n, err := d.number(uint64(len(d.rest)) / 3) // bytes a field has at least
	if err != nil {
		return nil, err
	}
	fields := make([]arrow.Field, n)
	for i := range fields {
		f := &fields[i]
		if f.Name, err = d.string(); err != nil {
			return nil, err
		}
		if f.Nullable, err = d.bool(); err != nil {
			return nil, err
		}
		if f.Type, err = d.dataType(depth + 1); err != nil {
			return nil, err
		}
	}
	return fields, nil
}
