package tables

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// values gives buffer i of d as values of T, from the buffer's start.
func values[T arrow.FixedWidthType | arrow.ViewHeader](d arrow.ArrayData, i int) []T {
	return arrow.GetData[T](bytesOf(d, i))
}

func bytesOf(d arrow.ArrayData, i int) []byte {
	if bufs := d.Buffers(); i < len(bufs) {
		return bufBytes(bufs[i])
	}
	return nil
}

func bufBytes(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// validity gives the validity bitmap of d, nil if d has no nulls.
func validity(d arrow.ArrayData) []byte {
	if d.NullN() == 0 {
		return nil
	}
	return bytesOf(d, 0)
}

func bitAt(b []byte, i int) bool { return b[i>>3]>>(i&7)&1 != 0 }

// eachUnset calls fn with the position, from 0, of every zero bit of
// b[at:at+n] (in bits).
func eachUnset(b []byte, at, n int, fn func(i int)) {
	for i := 0; i < n; {
		step := min(64, n-i)
		w := ^wordAt(b, at+i, step)
		if step < 64 {
			w &= 1<<step - 1
		}
		for ; w != 0; w &= w - 1 {
			fn(i + bits.TrailingZeros64(w))
		}
		i += step
	}
}

// wordAt gives n ≤ 64 bits of b from bit at, lowest first. Bits above n are
// undefined.
func wordAt(b []byte, at, n int) uint64 {
	i, sh := at>>3, uint(at&7)
	if i+9 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:]) >> sh
		if sh != 0 {
			w |= uint64(b[i+8]) << (64 - sh)
		}
		return w
	}
	var w uint64
	for j := 0; j < n; j++ {
		w |= uint64(b[(at+j)>>3]>>((at+j)&7)&1) << j
	}
	return w
}

// bitWriter appends bits to dst. Whatever dst held is overwritten.
type bitWriter struct {
	dst  []byte
	word uint64
	fill uint // bits in word
}

func (w *bitWriter) put(bit uint64) {
	w.word |= bit << w.fill
	if w.fill++; w.fill == 64 {
		binary.LittleEndian.PutUint64(w.dst, w.word)
		w.dst, w.word, w.fill = w.dst[8:], 0, 0
	}
}

// run appends n bits of src from bit at; of ones if src is nil.
func (w *bitWriter) run(src []byte, at, n int) {
	for n > 0 {
		step := min(n, int(64-w.fill))
		v := ^uint64(0)
		if src != nil {
			v = wordAt(src, at, step)
		}
		if step < 64 {
			v &= 1<<step - 1
		}
		w.word |= v << w.fill
		if w.fill += uint(step); w.fill == 64 {
			binary.LittleEndian.PutUint64(w.dst, w.word)
			w.dst, w.word, w.fill = w.dst[8:], 0, 0
		}
		at, n = at+step, n-step
	}
}

// pick appends the bits base+rows[…] of src.
func (w *bitWriter) pick(src []byte, base int, rows []int32) {
	for _, r := range rows {
		i := base + int(r)
		w.put(uint64(src[i>>3] >> (i & 7) & 1))
	}
}

// flush writes the last, partial word; unused bits are zero.
func (w *bitWriter) flush() {
	for i := uint(0); i < w.fill; i += 8 {
		w.dst[0] = byte(w.word >> i)
		w.dst = w.dst[1:]
	}
	w.word, w.fill = 0, 0
}

// countUnset counts the zero bits of b[at:at+n] (in bits).
func countUnset(b []byte, at, n int) int {
	return n - bitutil.CountSetBits(b, at, n)
}
