package flow

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// The column types of CSV, the first one that all values fit is taken.
// An empty field is null, in a string column the empty string.
var csvTypes = [...]struct {
	typ arrow.DataType
	fit func(string) bool
}{
	{arrow.PrimitiveTypes.Int64, func(s string) bool { _, ok := parseInt(s); return ok }},
	{arrow.PrimitiveTypes.Float64, func(s string) bool { _, ok := parseFloat(s); return ok }},
	{arrow.FixedWidthTypes.Boolean, func(s string) bool { return s == "true" || s == "false" }},
	{arrow.FixedWidthTypes.Date32, func(s string) bool { _, ok := parseDate(s); return ok }},
	{&arrow.TimestampType{Unit: arrow.Microsecond}, func(s string) bool { _, ok := parseTime(s, false); return ok }},
	{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, func(s string) bool { _, ok := parseTime(s, true); return ok }},
}

// guess narrows a column's type by its values. The zero guess knows nothing.
type guess struct {
	seen     bool
	excluded [len(csvTypes)]bool
}

func (g *guess) see(s string) {
	if s == "" {
		return
	}
	g.seen = true
	for i := range csvTypes {
		if !g.excluded[i] && !csvTypes[i].fit(s) {
			g.excluded[i] = true
		}
	}
}

func (g *guess) dataType() arrow.DataType {
	for i := range csvTypes {
		if g.seen && !g.excluded[i] {
			return csvTypes[i].typ
		}
	}
	return arrow.BinaryTypes.String
}

// parser appends a field to its column; false if it is not of the type.
type parser func(field string) bool

func parserOf(typ arrow.DataType, b array.Builder) parser {
	switch b := b.(type) {
	case *array.Int64Builder:
		return nullable(b, parseInt, b.Append)
	case *array.Float64Builder:
		return nullable(b, parseFloat, b.Append)
	case *array.BooleanBuilder:
		return nullable(b, func(s string) (bool, bool) { return s == "true", s == "true" || s == "false" }, b.Append)
	case *array.Date32Builder:
		return nullable(b, parseDate, b.Append)
	case *array.TimestampBuilder:
		zoned := typ.(*arrow.TimestampType).TimeZone != ""
		return nullable(b, func(s string) (arrow.Timestamp, bool) { return parseTime(s, zoned) }, b.Append)
	}
	text := b.(*array.StringBuilder)
	return func(s string) bool { text.Append(s); return true }
}

func nullable[T any](b array.Builder, parse func(string) (T, bool), add func(T)) parser {
	return func(s string) bool {
		if s == "" {
			b.AppendNull()
			return true
		}
		v, ok := parse(s)
		if ok {
			add(v)
		}
		return ok
	}
}

// plainNumber tells a decimal number from an identifier: no leading zeros or
// plus sign, which a number would lose.
func plainNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && s[0] != '+' && (len(s) == 1 || s[0] != '0' || s[1] < '0' || s[1] > '9')
}

func parseInt(s string) (int64, bool) {
	if !plainNumber(s) {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil
}

// parseFloat refuses integers that no float64 holds exactly: they are long
// identifiers, better kept as text.
func parseFloat(s string) (float64, bool) {
	switch s {
	case "NaN":
		return math.NaN(), true
	case "+Inf", "Inf":
		return math.Inf(1), true
	case "-Inf":
		return math.Inf(-1), true
	}
	if !plainNumber(s) || strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || (math.Abs(v) > 1<<53 && !strings.ContainsAny(s, ".eE")) {
		return 0, false
	}
	return v, true
}

func parseDate(s string) (arrow.Date32, bool) {
	if len(s) != len(time.DateOnly) {
		return 0, false
	}
	t, err := time.Parse(time.DateOnly, s)
	return arrow.Date32FromTime(t), err == nil
}

// parseTime reads RFC 3339 with T or a space between date and time, zoned or
// not, in whole microseconds.
func parseTime(s string, zoned bool) (arrow.Timestamp, bool) {
	if len(s) < len(time.DateTime) || (s[10] != 'T' && s[10] != ' ') {
		return 0, false
	}
	layout := "2006-01-02" + s[10:11] + "15:04:05"
	if zoned {
		layout += "Z07:00"
	}
	t, err := time.Parse(layout, s)
	if err != nil || t.Nanosecond()%1000 != 0 {
		return 0, false
	}
	return arrow.Timestamp(t.UnixMicro()), true
}
