package tables

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// maxRows bounds every array of a chunk, nested ones included, so that row
// positions fit 32 bits.
const maxRows = math.MaxInt32

// freeRows is how many rows an array of a chunk may have without a body to show
// for them: nulls of no type, runs, empty structs. With more, the rows are at
// most eight to a byte of the whole body. So a small chunk cannot make its
// receiver count to 2^31.
const freeRows = window

func tooLight(rows int, body int64) bool {
	return rows > freeRows && int64(rows) > 8*body
}

// kind is how an array lies in memory; many Arrow types share one kind.
type kind uint8

const (
	kNull       kind = iota // no buffers
	kBits                   // validity, one bit per value
	kFixed                  // validity, width bytes per value
	kVar32                  // validity, 32 bit offsets, bytes
	kVar64                  // validity, 64 bit offsets, bytes
	kView                   // validity, 16 byte headers, bytes
	kList32                 // validity, 32 bit offsets; one child
	kList64                 // validity, 64 bit offsets; one child
	kListView32             // validity, 32 bit offsets, sizes; one child
	kListView64             // validity, 64 bit offsets, sizes; one child
	kFixedList              // validity; one child of width values per row
	kStruct                 // validity; children of as many rows
	kDict                   // validity, indices of width bytes; the values
	kSparse                 // type codes; children of as many rows
	kDense                  // type codes, 32 bit offsets; children
	kRunEnd                 // run ends of width bytes; one value per run
)

// node is one array of a table, a column or a part of one. The nodes of a
// schema form a tree; a chunk stores them in the order of their ids, which is
// depth first.
type node struct {
	id       int
	kind     kind
	width    int            // bytes per value, index or run end; values per row of a fixed-size list
	required bool           // may not hold nulls: entries and keys of a map
	path     string         // for messages: column, or column.field
	logical  arrow.DataType // as the schema names it
	storage  arrow.DataType // logical without extension types
	kids     []*node
}

// tree is the compiled form of a schema.
type tree struct {
	schema *arrow.Schema
	cols   []*node
	nodes  []*node // by id
}

func compile(schema *arrow.Schema) (*tree, error) {
	if schema == nil {
		return nil, errors.New("no schema")
	}
	t := &tree{schema: schema}
	for _, f := range schema.Fields() {
		n, err := t.add(f.Name, f.Type, 0)
		if err != nil {
			return nil, err
		}
		t.cols = append(t.cols, n)
	}
	return t, nil
}

// maxDepth bounds the nesting of types: recursion follows it.
const maxDepth = 64

func (t *tree) add(path string, dt arrow.DataType, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("column %q: types nested deeper than %d", path, maxDepth)
	}
	n := &node{id: len(t.nodes), path: path, logical: dt, storage: dt}
	for {
		ext, ok := n.storage.(arrow.ExtensionType)
		if !ok {
			break
		}
		n.storage = ext.StorageType()
	}
	t.nodes = append(t.nodes, n)
	var kids []arrow.Field
	switch dt := n.storage.(type) {
	case *arrow.NullType:
		n.kind = kNull
	case *arrow.BooleanType:
		n.kind = kBits
	case *arrow.StringType, *arrow.BinaryType:
		n.kind = kVar32
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		n.kind = kVar64
	case *arrow.StringViewType, *arrow.BinaryViewType:
		n.kind = kView
	case *arrow.ListType:
		n.kind, kids = kList32, dt.Fields()
	case *arrow.MapType:
		n.kind, kids = kList32, dt.Fields()
	case *arrow.LargeListType:
		n.kind, kids = kList64, dt.Fields()
	case *arrow.ListViewType:
		n.kind, kids = kListView32, dt.Fields()
	case *arrow.LargeListViewType:
		n.kind, kids = kListView64, dt.Fields()
	case *arrow.FixedSizeListType:
		n.kind, n.width, kids = kFixedList, int(dt.Len()), dt.Fields()
	case *arrow.StructType:
		n.kind, kids = kStruct, dt.Fields()
	case *arrow.DictionaryType:
		n.kind, n.width = kDict, dt.IndexType.(arrow.FixedWidthDataType).Bytes()
		kids = []arrow.Field{{Name: "dictionary", Type: dt.ValueType}}
	case *arrow.SparseUnionType:
		n.kind, kids = kSparse, dt.Fields()
	case *arrow.DenseUnionType:
		n.kind, kids = kDense, dt.Fields()
	case *arrow.RunEndEncodedType:
		n.kind, n.width = kRunEnd, dt.RunEnds().(arrow.FixedWidthDataType).Bytes()
		kids = []arrow.Field{{Name: "values", Type: dt.Encoded()}}
	case arrow.FixedWidthDataType:
		n.kind, n.width = kFixed, dt.Bytes()
	default:
		return nil, fmt.Errorf("column %q: type %v is not supported", path, n.logical)
	}
	for _, f := range kids {
		kid, err := t.add(path+"."+f.Name, f.Type, depth+1)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, kid)
	}
	if n.storage.ID() == arrow.MAP {
		n.kids[0].required, n.kids[0].kids[0].required = true, true
	}
	return n, nil
}

// hasValidity reports whether arrays of this kind may carry a validity bitmap
// of their own. The others get their nulls from a child.
func (k kind) hasValidity() bool {
	return k != kNull && k != kSparse && k != kDense && k != kRunEnd
}

// hasExtent reports whether the layout of an array needs one number beyond
// its rows and nulls: see node.lengths.
func (k kind) hasExtent() bool {
	switch k {
	case kVar32, kVar64, kView, kList32, kList64, kListView32, kListView64, kDict, kRunEnd:
		return true
	}
	return false
}

// lengths gives the bytes of each buffer of an array with the given rows and
// nulls. extent is the number of value bytes (kVar, kView), of child rows
// (lists), of dictionary values or of runs. All arguments are within maxRows,
// but for value bytes, so nothing overflows.
func (n *node) lengths(rows, nulls int, extent int64) (l [3]int64) {
	r, w := int64(rows), int64(n.width)
	if nulls > 0 {
		l[0] = bytesFor(rows)
	}
	switch n.kind {
	case kBits:
		l[1] = bytesFor(rows)
	case kFixed, kDict:
		l[1] = r * w
	case kVar32:
		l[1], l[2] = 4*(r+1), extent
	case kVar64:
		l[1], l[2] = 8*(r+1), extent
	case kView:
		l[1], l[2] = 16*r, extent
	case kList32:
		l[1] = 4 * (r + 1)
	case kList64:
		l[1] = 8 * (r + 1)
	case kListView32:
		l[1], l[2] = 4*r, 4*r
	case kListView64:
		l[1], l[2] = 8*r, 8*r
	case kSparse:
		l[1] = r
	case kDense:
		l[1], l[2] = r, 4*r
	case kRunEnd:
		l[1] = extent * w
	}
	return l
}

// kidRows gives the rows of the children, which all kinds but kDense share.
func (n *node) kidRows(rows int, extent int64) int64 {
	switch n.kind {
	case kStruct, kSparse:
		return int64(rows)
	case kFixedList:
		return int64(rows) * int64(n.width)
	default:
		return extent
	}
}

// place is where the buffers of one node are in the body of a chunk.
type place struct {
	rows   int
	nulls  int
	extent int64    // see lengths
	lens   [3]int64 // bytes of each buffer
	pos    [3]int64 // where it begins
}

// settle puts the buffers one after the other, from at, and gives their end.
func (p *place) settle(at int64) int64 {
	for i, l := range p.lens {
		p.pos[i] = at
		at += aligned(l)
	}
	return at
}

// bodyAlign is the alignment of each buffer within a body, as Arrow advises.
const bodyAlign = 64

func aligned(n int64) int64 { return (n + bodyAlign - 1) &^ (bodyAlign - 1) }

func bytesFor(bits int) int64 { return (int64(bits) + 7) / 8 }
