package tables

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// dataType reads one type. Everything that arrow-go's constructors would
// panic on is refused before.
func (d *schemaReader) dataType(depth int) (arrow.DataType, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("types nested deeper than %d", maxDepth)
	}
	b, err := d.byte()
	if err != nil {
		return nil, err
	}
	id := arrow.Type(b)
	if dt, ok := plainTypes[id]; ok {
		return dt, nil
	}
	switch id {
	case arrow.FIXED_SIZE_BINARY:
		n, err := d.number(math.MaxInt32)
		return &arrow.FixedSizeBinaryType{ByteWidth: n}, err
	case arrow.TIMESTAMP, arrow.TIME32, arrow.TIME64, arrow.DURATION:
		return d.temporal(id)
	case arrow.DECIMAL32, arrow.DECIMAL64, arrow.DECIMAL128, arrow.DECIMAL256:
		return d.decimal(id)
	case arrow.LIST, arrow.LARGE_LIST, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW, arrow.FIXED_SIZE_LIST:
		return d.list(id, depth)
	case arrow.STRUCT:
		fields, err := d.fields(depth)
		if err != nil {
			return nil, err
		}
		return arrow.StructOf(fields...), nil
	case arrow.MAP:
		return d.mapType(depth)
	case arrow.DICTIONARY:
		return d.dictionary(depth)
	case arrow.RUN_END_ENCODED:
		return d.runEndEncoded(depth)
	case arrow.SPARSE_UNION, arrow.DENSE_UNION:
		return d.union(id, depth)
	case arrow.EXTENSION:
		for range 2 { // name and parameters
			if _, err := d.string(); err != nil {
				return nil, err
			}
		}
		return d.dataType(depth + 1)
	}
	return nil, fmt.Errorf("unknown type number %d", id)
}

func (d *schemaReader) temporal(id arrow.Type) (arrow.DataType, error) {
	b, err := d.byte()
	if err != nil {
		return nil, err
	}
	unit := arrow.TimeUnit(b)
	if unit < arrow.Second || unit > arrow.Nanosecond {
		return nil, fmt.Errorf("unknown time unit %d", b)
	}
	switch id {
	case arrow.TIMESTAMP:
		zone, err := d.string()
		return &arrow.TimestampType{Unit: unit, TimeZone: zone}, err
	case arrow.TIME32:
		return &arrow.Time32Type{Unit: unit}, nil
	case arrow.TIME64:
		return &arrow.Time64Type{Unit: unit}, nil
	default:
		return &arrow.DurationType{Unit: unit}, nil
	}
}

func (d *schemaReader) decimal(id arrow.Type) (arrow.DataType, error) {
	precision, err := d.number(math.MaxInt32)
	if err != nil {
		return nil, err
	}
	scale, n := binary.Varint(d.rest)
	if n <= 0 {
		return nil, errSchemaShort
	}
	d.rest = d.rest[n:]
	if scale < math.MinInt32 || scale > math.MaxInt32 {
		return nil, fmt.Errorf("decimal scale %d", scale)
	}
	return arrow.NewDecimalType(id, int32(precision), int32(scale))
}

func (d *schemaReader) list(id arrow.Type, depth int) (arrow.DataType, error) {
	size := 0
	if id == arrow.FIXED_SIZE_LIST {
		var err error
		if size, err = d.number(math.MaxInt32); err != nil {
			return nil, err
		}
		if size == 0 {
			return nil, fmt.Errorf("fixed-size list of no values")
		}
	}
	fields, err := d.fields(depth)
	if err != nil {
		return nil, err
	}
	if len(fields) != 1 {
		return nil, fmt.Errorf("list of %d fields", len(fields))
	}
	switch id {
	case arrow.LIST:
		return arrow.ListOfField(fields[0]), nil
	case arrow.LARGE_LIST:
		return arrow.LargeListOfField(fields[0]), nil
	case arrow.LIST_VIEW:
		return arrow.ListViewOfField(fields[0]), nil
	case arrow.LARGE_LIST_VIEW:
		return arrow.LargeListViewOfField(fields[0]), nil
	default:
		return arrow.FixedSizeListOfField(int32(size), fields[0]), nil
	}
}

func (d *schemaReader) mapType(depth int) (arrow.DataType, error) {
	sorted, err := d.bool()
	if err != nil {
		return nil, err
	}
	fields, err := d.fields(depth)
	if err != nil {
		return nil, err
	}
	if len(fields) != 2 || fields[0].Nullable {
		return nil, fmt.Errorf("map without key and value")
	}
	m := arrow.MapOfFields(fields[0], fields[1])
	m.KeysSorted = sorted
	return m, nil
}

func (d *schemaReader) dictionary(depth int) (arrow.DataType, error) {
	ordered, err := d.bool()
	if err != nil {
		return nil, err
	}
	index, err := d.dataType(depth + 1)
	if err != nil {
		return nil, err
	}
	if !arrow.IsInteger(index.ID()) {
		return nil, fmt.Errorf("dictionary indices of type %v", index)
	}
	vals, err := d.dataType(depth + 1)
	return &arrow.DictionaryType{IndexType: index, ValueType: vals, Ordered: ordered}, err
}

func (d *schemaReader) runEndEncoded(depth int) (arrow.DataType, error) {
	ends, err := d.dataType(depth + 1)
	if err != nil {
		return nil, err
	}
	switch ends.ID() {
	case arrow.INT16, arrow.INT32, arrow.INT64:
	default:
		return nil, fmt.Errorf("run ends of type %v", ends)
	}
	vals, err := d.dataType(depth + 1)
	if err != nil {
		return nil, err
	}
	return arrow.RunEndEncodedOf(ends, vals), nil
}

// union reads the type codes, up to a byte that can be none, and the fields.
func (d *schemaReader) union(id arrow.Type, depth int) (arrow.DataType, error) {
	var codes []arrow.UnionTypeCode
	var seen [128]bool
	for {
		b, err := d.byte()
		if err != nil {
			return nil, err
		}
		if b == 0xff {
			break
		}
		if b > 127 || seen[b] {
			return nil, fmt.Errorf("type code %d out of range or twice", b)
		}
		seen[b] = true
		codes = append(codes, arrow.UnionTypeCode(b))
	}
	fields, err := d.fields(depth)
	if err != nil {
		return nil, err
	}
	if len(fields) != len(codes) {
		return nil, fmt.Errorf("union of %d fields with %d type codes", len(fields), len(codes))
	}
	mode := arrow.SparseMode
	if id == arrow.DENSE_UNION {
		mode = arrow.DenseMode
	}
	return arrow.UnionOf(mode, fields, codes), nil
}
