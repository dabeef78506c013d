package flow

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// cells is a column with its dictionary resolved: row i is values[at[i]], null
// if at[i] is negative.
type cells struct {
	values arrow.Array
	at     []int32
}

// plainType resolves dictionaries and extensions.
func plainType(typ arrow.DataType) arrow.DataType {
	switch t := typ.(type) {
	case *arrow.DictionaryType:
		return plainType(t.ValueType)
	case arrow.ExtensionType:
		return plainType(t.StorageType())
	}
	return typ
}

// resolve points c at arr, whose values c borrows.
func (c *cells) resolve(arr arrow.Array) {
	n := arr.Len()
	c.at = slices.Grow(c.at[:0], n)[:n]
	for i := range c.at {
		c.at[i] = int32(i)
	}
	for {
		c.drop(arr)
		switch a := arr.(type) {
		case *array.Dictionary:
			for i, at := range c.at {
				if at >= 0 {
					c.at[i] = int32(a.GetValueIndex(int(at)))
				}
			}
			arr = a.Dictionary()
		case array.ExtensionArray:
			arr = a.Storage()
		default:
			c.values = arr
			return
		}
	}
}

// drop marks the rows whose value in arr is null.
func (c *cells) drop(arr arrow.Array) {
	if arr.NullN() == 0 && arr.DataType().ID() != arrow.NULL {
		return
	}
	for i, at := range c.at {
		if at >= 0 && isNull(arr, int(at)) {
			c.at[i] = -1
		}
	}
}

// isNull also knows arrays of type null, which have no bitmap that says so.
func isNull(arr arrow.Array, i int) bool { return arr.IsNull(i) || arr.DataType().ID() == arrow.NULL }
