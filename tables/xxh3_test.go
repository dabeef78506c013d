package tables

import (
	"encoding/binary"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

func TestMixerIsXXH3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		lo, hi := rapid.Uint64().Draw(t, "lo"), rapid.Uint64().Draw(t, "hi")
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], lo)
		binary.LittleEndian.PutUint64(b[8:], hi)
		m := newMixer(seed)
		if got, want := m.hash8(lo), xxh3.HashSeed(b[:8], seed); got != want {
			t.Fatalf("hash8: %x, want %x", got, want)
		}
		if got, want := m.hash16(lo, hi), xxh3.HashSeed(b[:], seed); got != want {
			t.Fatalf("hash16: %x, want %x", got, want)
		}
	})
}
