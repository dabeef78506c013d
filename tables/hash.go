package tables

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

var (
	// ErrKeyType is matched by the refusal of a key column whose type has no
	// hash: lists, structs, maps, unions.
	ErrKeyType = errors.New("type cannot be a key")
	// ErrNoColumn is matched by the refusal of a name that no column, or more
	// than one, has.
	ErrNoColumn = errors.New("no such column")
	// ErrSchema is matched by the refusal of a batch or chunk of another schema.
	ErrSchema = errors.New("schema differs")
	// ErrInvalid is matched by the refusal of a batch that breaks Arrow's rules.
	ErrInvalid = errors.New("invalid batch")
)

// A Hasher computes the hashes of rows over some key columns, as docs/hash.md
// defines them. It keeps scratch memory and serves one goroutine.
type Hasher struct {
	tree *tree
	cols []int
	core hashCore
	chk  checker
	part []uint64 // one column's hashes
}

// NewHasher returns a Hasher for batches of the schema. The order of keys
// matters. All keys that are missing or of a type without hash are reported.
func NewHasher(schema *arrow.Schema, keys []string, seed uint64) (*Hasher, error) {
	t, err := compile(schema)
	if err != nil {
		return nil, fmt.Errorf("tables: hash: %w", err)
	}
	cols, err := t.keyColumns(keys)
	if err != nil {
		return nil, fmt.Errorf("tables: hash: %w", err)
	}
	return newHasher(t, cols, seed), nil
}

func newHasher(t *tree, cols []int, seed uint64) *Hasher {
	return &Hasher{tree: t, cols: cols, core: newHashCore(seed)}
}

// keyColumns finds the columns of the keys and reports every fault.
func (t *tree) keyColumns(keys []string) ([]int, error) {
	var cols []int
	var faults []error
	if len(keys) == 0 {
		faults = append(faults, errors.New("no key columns"))
	}
	for _, k := range keys {
		at := t.schema.FieldIndices(k)
		switch {
		case len(at) == 0:
			faults = append(faults, fmt.Errorf("key %q: %w", k, ErrNoColumn))
		case len(at) > 1:
			faults = append(faults, fmt.Errorf("key %q: %w: %d columns have this name", k, ErrNoColumn, len(at)))
		case !t.cols[at[0]].hashable():
			faults = append(faults, fmt.Errorf("key %q: %w: %v", k, ErrKeyType, t.cols[at[0]].logical))
		default:
			cols = append(cols, at[0])
		}
	}
	return cols, errors.Join(faults...)
}

// hashable reports whether the node may be a key.
func (n *node) hashable() bool {
	switch n.kind {
	case kNull, kBits, kFixed, kVar32, kVar64, kView:
		return true
	case kDict, kRunEnd:
		return n.kids[0].hashable()
	}
	return false
}

// Hash gives the hash of each row of the batch, in dst if that is large
// enough.
func (h *Hasher) Hash(batch arrow.RecordBatch, dst []uint64) ([]uint64, error) {
	if err := h.tree.match(batch); err != nil {
		return nil, fmt.Errorf("tables: hash: %w", err)
	}
	dst = sized(dst, int(batch.NumRows()))
	for _, i := range h.cols {
		d := batch.Column(i).Data()
		if err := h.chk.check(h.tree.cols[i], d, d.Offset(), len(dst)); err != nil {
			return nil, fmt.Errorf("tables: hash: %w: %w", ErrInvalid, err)
		}
	}
	h.rows(batch, h.cols, 0, dst)
	return dst, nil
}

// rows writes the hashes over the given columns, verified before, of the
// len(dst) rows from at.
func (h *Hasher) rows(batch arrow.RecordBatch, cols []int, at int, dst []uint64) {
	for k, i := range cols {
		d := batch.Column(i).Data()
		if k == 0 {
			h.core.hash(h.tree.cols[i], d, d.Offset()+at, dst)
			continue
		}
		h.part = sized(h.part, len(dst))
		h.core.hash(h.tree.cols[i], d, d.Offset()+at, h.part)
		h.core.chain(dst, h.part)
	}
}

// match verifies that the batch has the columns of the tree. Names and
// metadata may differ.
func (t *tree) match(batch arrow.RecordBatch) error {
	if got := int(batch.NumCols()); got != len(t.cols) {
		return fmt.Errorf("%w: %d columns where %d were declared", ErrSchema, got, len(t.cols))
	}
	for i, n := range t.cols {
		if got := batch.Column(i).DataType(); !arrow.TypeEqual(got, n.logical) {
			return fmt.Errorf("%w: column %q is %v where %v was declared", ErrSchema, n.path, got, n.logical)
		}
	}
	return nil
}

// PartitionOf maps a hash to one of parts partitions: the high 64 bits of the
// 128 bit product hash × parts.
func PartitionOf(hash uint64, parts int) uint32 {
	hi, _ := bits.Mul64(hash, uint64(parts))
	return uint32(hi)
}
