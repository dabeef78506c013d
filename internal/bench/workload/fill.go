package workload

import (
	"encoding/binary"
	"math/bits"
)

// fill writes incompressible bytes that depend on all of seed and on nothing
// else. Each 8 bytes come from a counter, so there is no state to carry and no
// dependency between them.
func fill(b []byte, seed uint64) {
	const step, mix = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	x := scramble(seed)
	for len(b) >= 8 {
		hi, lo := bits.Mul64(x, mix)
		binary.LittleEndian.PutUint64(b, hi^lo)
		b = b[8:]
		x += step
	}
	hi, lo := bits.Mul64(x, mix)
	for i := range b {
		b[i] = byte((hi ^ lo) >> (8 * i))
	}
}

// scramble spreads the bits of a small number over 64.
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// readAll reads every byte, so that a run without validation still does.
func readAll(b []byte) uint64 {
	var sum uint64
	for len(b) >= 8 {
		sum += binary.LittleEndian.Uint64(b)
		b = b[8:]
	}
	for _, c := range b {
		sum += uint64(c)
	}
	return sum
}
