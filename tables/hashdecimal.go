package tables

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/zeebo/xxh3"
)

// decimals hashes numbers by value: 1, 1.0 and 1.00 are equal, and equal to
// the integer 1.
func (h *hashCore) decimals(dt arrow.DecimalType, d arrow.ArrayData, at int, dst []uint64) {
	scale := int(dt.GetScale())
	switch dt.ID() {
	case arrow.DECIMAL32:
		for i, v := range values[decimal.Decimal32](d, 1)[at : at+len(dst)] {
			dst[i] = h.decimal64(int64(v), scale)
		}
	case arrow.DECIMAL64:
		for i, v := range values[decimal.Decimal64](d, 1)[at : at+len(dst)] {
			dst[i] = h.decimal64(int64(v), scale)
		}
	case arrow.DECIMAL128:
		for i, v := range values[decimal128.Num](d, 1)[at : at+len(dst)] {
			if lo := int64(v.LowBits()); lo>>63 == v.HighBits() {
				dst[i] = h.decimal64(lo, scale)
				continue
			}
			sign := uint64(v.HighBits() >> 63)
			dst[i] = h.decimal256([4]uint64{v.LowBits(), uint64(v.HighBits()), sign, sign}, scale)
		}
	case arrow.DECIMAL256:
		for i, v := range values[decimal256.Num](d, 1)[at : at+len(dst)] {
			dst[i] = h.decimal256(v.Array(), scale)
		}
	}
}

// decimal64 hashes v·10^-scale.
func (h *hashCore) decimal64(v int64, scale int) uint64 {
	if v == 0 {
		return h.hash8(0)
	}
	for v%10 == 0 {
		v /= 10
		scale--
	}
	if scale > 0 {
		return h.fraction64(v, scale)
	}
	mag := [4]uint64{uint64(max(v, -v))} // -v of the least integer is itself, 2^63
	if u, ok := integer(mag, scale); ok && (v > 0 || u <= 1<<63) {
		if v < 0 {
			u = -u
		}
		return h.hash8(u)
	}
	return h.fraction64(v, scale)
}

// fraction64 hashes v·10^-scale, v no multiple of ten.
func (h *hashCore) fraction64(v int64, scale int) uint64 {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	binary.LittleEndian.PutUint32(b[8:], uint32(int32(-scale)))
	return xxh3.HashSeed(b[:], h.seed)
}

func wide(v int64) [4]uint64 {
	sign := uint64(v >> 63)
	return [4]uint64{uint64(v), sign, sign, sign}
}

// decimal256 hashes v·10^-scale, v in two's complement, lowest word first.
func (h *hashCore) decimal256(v [4]uint64, scale int) uint64 {
	if v == [4]uint64{} {
		return h.hash8(0)
	}
	negative := v[3]>>63 != 0
	if negative {
		v = negated(v)
	}
	for {
		q, r := div10(v)
		if r != 0 {
			break
		}
		v, scale = q, scale-1
	}
	if u, ok := integer(v, scale); ok && (!negative || u <= 1<<63) {
		if negative {
			u = -u
		}
		return h.hash8(u)
	}
	if negative {
		v = negated(v)
	}
	if v == wide(int64(v[0])) {
		return h.fraction64(int64(v[0]), scale)
	}
	var b [36]byte
	for i, w := range v {
		binary.LittleEndian.PutUint64(b[8*i:], w)
	}
	binary.LittleEndian.PutUint32(b[32:], uint32(int32(-scale)))
	return xxh3.HashSeed(b[:], h.seed)
}

// integer gives the magnitude v·10^-scale if it is an integer below 2^64.
func integer(v [4]uint64, scale int) (uint64, bool) {
	if scale > 0 || v[1]|v[2]|v[3] != 0 {
		return 0, false
	}
	u := v[0]
	for ; scale < 0; scale++ {
		hi, lo := bits.Mul64(u, 10)
		if hi != 0 {
			return 0, false
		}
		u = lo
	}
	return u, true
}

func negated(v [4]uint64) [4]uint64 {
	carry := uint64(1)
	for i := range v {
		v[i], carry = bits.Add64(^v[i], 0, carry)
	}
	return v
}

func div10(v [4]uint64) (q [4]uint64, r uint64) {
	for i := 3; i >= 0; i-- {
		q[i], r = bits.Div64(r, v[i], 10)
	}
	return q, r
}
