package tables

import "math/bits"

// Words of the default secret of XXH3 that its short inputs use, by offset.
const (
	secret08 = 0x1cad21f72c81017c
	secret16 = 0xdb979083e96dd4de
	secret24 = 0x1f67b3b7a4a44072
	secret32 = 0x78e5c0cc4ee679cb
	secret40 = 0x2172ffcc7dd05a82
	secret48 = 0x8e2443f7744608b8
)

// mixer computes XXH3_64bits_withSeed of inputs of exactly 8 and 16 bytes,
// given as little-endian words, with the seed's part done once. A test
// compares it with the library, which serves every other length.
type mixer struct {
	seed                  uint64
	flip8, flipLo, flipHi uint64
}

func newMixer(seed uint64) mixer {
	spread := seed ^ uint64(bits.ReverseBytes32(uint32(seed)))<<32
	return mixer{
		seed:   seed,
		flip8:  (secret08 ^ secret16) - spread,
		flipLo: (secret24 ^ secret32) + seed,
		flipHi: (secret40 ^ secret48) - seed,
	}
}

func (m *mixer) hash8(v uint64) uint64 {
	x := bits.RotateLeft64(v, 32) ^ m.flip8
	x ^= bits.RotateLeft64(x, 49) ^ bits.RotateLeft64(x, 24)
	x *= 0x9fb21c651e98df25
	x ^= x>>35 + 8
	x *= 0x9fb21c651e98df25
	return x ^ x>>28
}

func (m *mixer) hash16(lo, hi uint64) uint64 {
	lo ^= m.flipLo
	hi ^= m.flipHi
	ph, pl := bits.Mul64(lo, hi)
	x := 16 + bits.ReverseBytes64(lo) + hi + (ph ^ pl)
	x ^= x >> 37
	x *= 0x165667919e3779f9
	return x ^ x>>32
}
