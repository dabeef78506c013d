package shuffle

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/internal/fifo"
)

// partition is the inbox of one local partition.
type partition struct {
	id       PartID
	expect   uint64 // chunks counted by the finish messages so far
	got      uint64
	complete bool
	items    fifo.Queue[item]
	lastSeq  []uint64 // by source: number after the last that arrived
	unsorted bool     // a chunk came before one that its source inserted earlier
	slab     *slab    // being filled
	slabSize int64    // of the latest slab
}

// item is one chunk, or a run of small chunks of one batch in one slab.
type item struct {
	seq  uint64             // of the (first) chunk
	data *buffer.PackedData // a whole chunk; nil for a run, and once taken
	slab *slab              // of a run
	src  comm.Rank
	off  int32 // in the slab
	n    int32 // chunks left in the run
}

// slab is host memory that small chunks are copied into. refs counts the items
// in it and the filling of it.
type slab struct {
	buf  *buffer.Buffer
	mem  []byte
	used int
	refs int
}

// A slab record is its two lengths, then payload and metadata, each padded to 8
// bytes so that payloads stay aligned.
const slabHeader = 8

const (
	firstSlab = 4 << 10
	maxSlab   = 64 << 10
)

func pad8(n int) int { return (n + 7) &^ 7 }

func slabRecord(meta, data int) int { return slabHeader + pad8(data) + pad8(meta) }

// note counts one arrived chunk and watches the order.
func (p *partition) note(src comm.Rank, seq uint64) {
	p.got++
	if seq < p.lastSeq[src] {
		p.unsorted = true
	}
	p.lastSeq[src] = seq + 1
}

// add takes a whole chunk.
func (p *partition) add(src comm.Rank, seq uint64, d *buffer.PackedData) {
	p.note(src, seq)
	p.items.Push(item{seq: seq, data: d, src: src})
}

// free is how many bytes the slab being filled still takes.
func (p *partition) free() int {
	if p.slab == nil {
		return 0
	}
	return len(p.slab.mem) - p.slab.used
}

// nextSlab is the size of the slab to take when need bytes do not fit.
func (p *partition) nextSlab(need int) int64 {
	return max(int64(need), min(maxSlab, max(firstSlab, 4*p.slabSize)))
}

// addSmall copies a small chunk of a batch that starts with number first into
// the slab being filled; the caller has made room. Chunks of one batch form one
// run: nothing that their source inserted between them can be missing.
func (p *partition) addSmall(src comm.Rank, first, seq uint64, r comm.Record) {
	s := p.slab
	at := s.used
	b := s.mem[at:]
	binary.LittleEndian.PutUint32(b, uint32(len(r.Data)))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(r.Meta)))
	copy(b[slabHeader:], r.Data)
	copy(b[slabHeader+pad8(len(r.Data)):], r.Meta)
	s.used += slabRecord(len(r.Meta), len(r.Data))
	p.note(src, seq)
	if last := p.items.Back(); last != nil && last.slab == s && last.src == src && first <= last.seq && last.seq < seq {
		last.n++
		return
	}
	s.refs++
	p.items.Push(item{seq: seq, slab: s, src: src, off: int32(at), n: 1})
}

// use makes s the slab that is filled.
func (p *partition) use(s *slab, size int64) {
	p.slab.drop()
	s.refs++
	p.slab, p.slabSize = s, size
}

// seal ends the filling; the partition is complete.
func (p *partition) seal() {
	p.complete = true
	p.slab.drop()
	p.slab = nil
	if p.unsorted {
		all := slices.Collect(p.items.Drain())
		slices.SortFunc(all, func(a, b item) int { return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.seq, b.seq)) })
		for _, it := range all {
			p.items.Push(it)
		}
	}
	p.lastSeq = nil
}

// empty reports whether every chunk of the item was taken.
func (it *item) empty() bool { return it.data == nil && it.n == 0 }

// release frees what was not taken.
func (it *item) release() {
	if it.data != nil {
		it.data.Release()
	}
	it.slab.drop()
}

// drop gives one reference back.
func (s *slab) drop() {
	if s == nil {
		return
	}
	if s.refs--; s.refs == 0 {
		s.buf.Release()
	}
}

// release frees everything that was not taken.
func (p *partition) release() {
	for it := range p.items.Drain() {
		it.release()
	}
	p.slab.drop()
	p.slab = nil
}

// hostBytes returns the bytes of a host buffer that this package owns; they do
// not move while it does.
func hostBytes(b *buffer.Buffer) []byte {
	var p []byte
	// Host memory without a stream is always ready, so this cannot fail or wait.
	_ = b.OnHost(context.Background(), func(q []byte) error { p = q; return nil })
	return p
}
