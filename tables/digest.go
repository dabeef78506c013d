package tables

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// A MultisetSum stands for a multiset of rows: it is equal for equal rows,
// however they are ordered and cut into batches. Rows are compared by value, as
// by the hash; every column counts. It detects accidents, not forgery, and its
// numbers mean something only within one version of sluice.
type MultisetSum struct {
	Rows uint64
	Sum  uint64 // of the hashes of the rows, modulo 2^64
}

// Plus gives the sum of both multisets.
func (m MultisetSum) Plus(o MultisetSum) MultisetSum {
	return MultisetSum{Rows: m.Rows + o.Rows, Sum: m.Sum + o.Sum}
}

// String gives both numbers.
func (m MultisetSum) String() string { return fmt.Sprintf("%016x/%d", m.Sum, m.Rows) }

// A Digester computes the MultisetSum of batches of one schema. It keeps
// scratch memory and serves one goroutine.
type Digester struct {
	hasher Hasher
	hashes []uint64
	sum    MultisetSum
}

// digestSeed differs from the seed of a partition hash in use, so that a fault
// that keeps those hashes does not keep the sum.
const digestSeed = 0x736c75696365

// NewDigester returns a Digester without rows.
func NewDigester(schema *arrow.Schema) (*Digester, error) {
	t, err := compile(schema)
	if err != nil {
		return nil, fmt.Errorf("tables: digest: %w", err)
	}
	cols := make([]int, len(t.cols))
	for i := range cols {
		cols[i] = i
	}
	return &Digester{hasher: *newHasher(t, cols, digestSeed)}, nil
}

// Add adds the rows of the batch.
func (d *Digester) Add(batch arrow.RecordBatch) error {
	h := &d.hasher
	if err := h.tree.verify(batch, &h.chk); err != nil {
		return fmt.Errorf("tables: digest: %w", err)
	}
	for at := int64(0); at < batch.NumRows(); at += window {
		d.hashes = sized(d.hashes, int(min(window, batch.NumRows()-at)))
		clear(d.hashes) // what a row without columns hashes to
		h.rows(batch, h.cols, int(at), d.hashes)
		for _, x := range d.hashes {
			d.sum.Sum += x
		}
	}
	d.sum.Rows += uint64(batch.NumRows())
	return nil
}

// Sum returns the sum of all rows so far.
func (d *Digester) Sum() MultisetSum { return d.sum }
