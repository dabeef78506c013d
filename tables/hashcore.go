package tables

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/zeebo/xxh3"
)

// hashCore hashes arrays of every type, one column at a time. Arrays are
// verified before they come here. Types that cannot be keys have hashes too:
// MultisetSum uses them, and they may change between versions.
type hashCore struct {
	mixer
	null uint64 // hash of a null of any type
	idx  []int32
}

// nullByte is what a null hashes like: no key type has this byte string,
// except binary.
const nullByte = 0xff

func newHashCore(seed uint64) hashCore {
	return hashCore{
		mixer: newMixer(seed),
		null:  xxh3.HashSeed([]byte{nullByte}, seed),
	}
}

// chain folds the hashes of the next column into those of the columns before.
func (h *hashCore) chain(dst, next []uint64) {
	for i, v := range next {
		dst[i] = h.hash16(dst[i], v)
	}
}

// hash writes the hashes of the len(dst) values of d from at (counted from the
// start of d's buffers). Values under a null are hashed and overwritten after:
// that keeps the loops free of branches.
func (h *hashCore) hash(n *node, d arrow.ArrayData, at int, dst []uint64) {
	if len(dst) == 0 {
		return
	}
	switch n.kind {
	case kNull:
		fill(dst, h.null)
	case kBits:
		h.bools(bytesOf(d, 1), at, dst)
	case kFixed:
		h.fixed(n.storage, d, at, dst)
	case kVar32:
		hashVar(values[int32](d, 1)[at:], bytesOf(d, 2), h.seed, dst)
	case kVar64:
		hashVar(values[int64](d, 1)[at:], bytesOf(d, 2), h.seed, dst)
	case kView:
		h.views(d, at, dst)
	default:
		h.nested(n, d, at, dst)
	}
	if n.kind.hasValidity() {
		if v := validity(d); v != nil {
			eachUnset(v, at, len(dst), func(i int) { dst[i] = h.null })
		}
	}
}

func fill(dst []uint64, v uint64) {
	for i := range dst {
		dst[i] = v
	}
}

func (h *hashCore) bools(b []byte, at int, dst []uint64) {
	two := [2]uint64{xxh3.HashSeed([]byte{0}, h.seed), xxh3.HashSeed([]byte{1}, h.seed)}
	for i := range dst {
		j := at + i
		dst[i] = two[b[j>>3]>>(j&7)&1]
	}
}

// fixed hashes types of a fixed number of bytes.
func (h *hashCore) fixed(dt arrow.DataType, d arrow.ArrayData, at int, dst []uint64) {
	switch dt := dt.(type) {
	case *arrow.Int8Type:
		hashInts(h, values[int8](d, 1)[at:], dst)
	case *arrow.Int16Type:
		hashInts(h, values[int16](d, 1)[at:], dst)
	case *arrow.Int32Type:
		hashInts(h, values[int32](d, 1)[at:], dst)
	case *arrow.Int64Type:
		hashInts(h, values[int64](d, 1)[at:], dst)
	case *arrow.Uint8Type:
		hashInts(h, values[uint8](d, 1)[at:], dst)
	case *arrow.Uint16Type:
		hashInts(h, values[uint16](d, 1)[at:], dst)
	case *arrow.Uint32Type:
		hashInts(h, values[uint32](d, 1)[at:], dst)
	case *arrow.Uint64Type:
		hashInts(h, values[uint64](d, 1)[at:], dst)
	case *arrow.Float16Type:
		for i, v := range values[float16.Num](d, 1)[at : at+len(dst)] {
			dst[i] = h.float(float64(v.Float32()))
		}
	case *arrow.Float32Type:
		for i, v := range values[float32](d, 1)[at : at+len(dst)] {
			dst[i] = h.float(float64(v))
		}
	case *arrow.Float64Type:
		for i, v := range values[float64](d, 1)[at : at+len(dst)] {
			dst[i] = h.float(v)
		}
	case *arrow.FixedSizeBinaryType:
		data := bytesOf(d, 1)
		for i := range dst {
			j := (at + i) * dt.ByteWidth
			dst[i] = xxh3.HashSeed(data[j:j+dt.ByteWidth], h.seed)
		}
	case arrow.DecimalType:
		h.decimals(dt, d, at, dst)
	default:
		h.temporal(dt, d, at, dst)
	}
}

func hashInts[T arrow.IntType | arrow.UintType](h *hashCore, src []T, dst []uint64) {
	m := h.mixer
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] = m.hash8(uint64(v))
	}
}

// float hashes by value: one NaN, one zero.
func (h *hashCore) float(f float64) uint64 {
	b := math.Float64bits(f)
	if f != f {
		b = 0x7ff8000000000000
	} else if f == 0 {
		b = 0
	}
	return h.hash8(b)
}

func hashVar[O int32 | int64](off []O, data []byte, seed uint64, dst []uint64) {
	from := off[0]
	for i := range dst {
		to := off[i+1]
		dst[i] = xxh3.HashSeed(data[from:to], seed)
		from = to
	}
}

func (h *hashCore) views(d arrow.ArrayData, at int, dst []uint64) {
	heads, bufs, valid := values[arrow.ViewHeader](d, 1), viewBufs(d), validity(d)
	for i := range dst {
		if valid == nil || bitAt(valid, at+i) {
			dst[i] = xxh3.HashSeed(viewBytes(&heads[at+i], bufs), h.seed)
		}
	}
}
