package flow

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Text returns value i of an array as CSV holds it: null is empty, times are
// RFC 3339 in the column's zone, other types as Arrow prints them. The text of
// null and the empty string is the same.
func Text(arr arrow.Array, i int) string {
	if isNull(arr, i) {
		return ""
	}
	switch a := arr.(type) {
	case textValues:
		return a.Value(i)
	case *array.Int64:
		return strconv.FormatInt(a.Value(i), 10)
	case *array.Float64:
		return strconv.FormatFloat(a.Value(i), 'g', -1, 64)
	case *array.Timestamp:
		return timeText(a, i)
	case *array.Dictionary:
		return Text(a.Dictionary(), a.GetValueIndex(i))
	case array.ExtensionArray:
		return Text(a.Storage(), i)
	}
	return arr.ValueStr(i)
}

func timeText(a *array.Timestamp, i int) string {
	typ := a.DataType().(*arrow.TimestampType)
	t := a.Value(i).ToTime(typ.Unit)
	if typ.TimeZone == "" {
		return t.Format("2006-01-02T15:04:05.999999999")
	}
	if toZone, err := typ.GetToTimeFunc(); err == nil { // a zone this machine does not know: UTC
		t = toZone(a.Value(i))
	}
	return t.Format(time.RFC3339Nano)
}

// JSON returns value i of an array as a value for encoding/json: exact integers,
// finite floats and booleans as such, null as nil, all else as Text.
func JSON(arr arrow.Array, i int) any {
	if isNull(arr, i) {
		return nil
	}
	switch a := arr.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Float32:
		return jsonFloat(float64(a.Value(i)), arr, i)
	case *array.Float64:
		return jsonFloat(a.Value(i), arr, i)
	}
	if arrow.IsInteger(arr.DataType().ID()) {
		return json.Number(arr.ValueStr(i))
	}
	return Text(arr, i)
}

func jsonFloat(v float64, arr arrow.Array, i int) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Text(arr, i)
	}
	return v
}

// writeHeader writes the names of the columns as a line of CSV.
func writeHeader(w io.Writer, schema *arrow.Schema) error {
	names := make([]string, schema.NumFields())
	for i, f := range schema.Fields() {
		names[i] = f.Name
	}
	cw := csv.NewWriter(w)
	if err := cw.Write(names); err != nil {
		return err
	}
	cw.Flush()
	return cw.Error()
}

// writeRows writes the rows of a batch in the given order, nil: as they are.
func writeRows(w io.Writer, batch arrow.RecordBatch, order []int) error {
	cw := csv.NewWriter(w)
	record := make([]string, batch.NumCols())
	for n := range int(batch.NumRows()) {
		row := n
		if order != nil {
			row = order[n]
		}
		for c := range record {
			record[c] = Text(batch.Column(c), row)
		}
		if len(record) == 1 && record[0] == "" {
			cw.Flush()
			if _, err := io.WriteString(w, "\"\"\n"); err != nil { // a blank line would be no row
				return err
			}
			continue
		}
		if err := cw.Write(record); err != nil {
			return err
		}
	}
	cw.Flush()
	return cw.Error()
}
