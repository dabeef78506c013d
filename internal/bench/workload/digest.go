package workload

import (
	"fmt"

	"github.com/sluice-engine/sluice/tables"
)

// Digest stands for what one rank inserted or received in one run. Digests of
// all ranks add up; both sides of a right exchange are equal.
type Digest struct {
	Chunks int64
	Rows   tables.MultisetSum // table: all rows
	Parts  []PartSum          // shuffle: by partition
}

// PartSum stands for the chunks of one partition, in any order.
type PartSum struct {
	Chunks int64
	Sum    uint64 // of the hashes of the chunks, modulo 2^64
}

func (d *Digest) add(o Digest) {
	d.Chunks += o.Chunks
	d.Rows = d.Rows.Plus(o.Rows)
	if d.Parts == nil {
		d.Parts = make([]PartSum, len(o.Parts))
	}
	for i, p := range o.Parts {
		d.Parts[i].Chunks += p.Chunks
		d.Parts[i].Sum += p.Sum
	}
}

// String returns the digest as text that is equal for equal data.
func (d Digest) String() string {
	sum := d.Rows.Sum
	for i, p := range d.Parts {
		sum += p.Sum * (2*uint64(i) + 1) // so that exchanged partitions show
	}
	return fmt.Sprintf("%016x", sum)
}

// wrong counts the partitions that differ and, for tables, the rows that are
// lost or doubled, at least one if the rows differ.
func wrong(in, out Digest) int64 {
	var n int64
	for i := range in.Parts {
		if in.Parts[i] != out.Parts[i] {
			n++
		}
	}
	if in.Rows != out.Rows {
		lost := int64(in.Rows.Rows) - int64(out.Rows.Rows)
		n += max(1, lost, -lost)
	}
	return n
}

// Check compares, run by run, what all ranks inserted with what they received.
// bad counts the differences.
func Check(runs [][]RankRun) (in, out Digest, bad int64) {
	for _, ranks := range runs {
		var runIn, runOut Digest
		for _, r := range ranks {
			runIn.add(r.In)
			runOut.add(r.Out)
			bad += r.Misplaced
		}
		bad += wrong(runIn, runOut)
		in.add(runIn)
		out.add(runOut)
	}
	return in, out, bad
}
