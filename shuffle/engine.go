package shuffle

import (
	"fmt"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// engine is one rank's side of a shuffle, without goroutines or locks.
type engine struct {
	self  comm.Rank
	size  int
	owner []comm.Rank // by partition
	local []PartID
	index map[PartID]*partition

	out      *comm.Outbox
	queued   int64    // bytes of chunks in out
	accepted []uint64 // chunks by partition
	ownSeq   uint64   // numbers of this rank's own chunks
	finished bool

	finish   []bool // ranks whose finish message has come
	finishes int
	ready    []PartID // complete, in completion order
	taken    int      // of ready, by NextPartition
	left     int      // local partitions not complete

	stats Stats
}

// Stats counts what one shuffle has done on this rank. Bytes are payload and
// metadata; a rank's own chunks are counted apart.
type Stats struct {
	ChunksSent, BytesSent         int64
	ChunksReceived, BytesReceived int64
	ChunksLocal, BytesLocal       int64
	SentTo                        []int64 // bytes to each rank
}

func newEngine(self comm.Rank, size int, owner []comm.Rank, order comm.Order) *engine {
	e := &engine{
		self: self, size: size, owner: owner,
		index:    map[PartID]*partition{},
		out:      comm.NewOutbox(size, order),
		accepted: make([]uint64, len(owner)),
		finish:   make([]bool, size),
	}
	e.stats.SentTo = make([]int64, size)
	for p, r := range owner {
		if r == self {
			e.local = append(e.local, PartID(p))
			e.index[PartID(p)] = &partition{id: PartID(p), lastSeq: make([]uint64, size)}
		}
	}
	e.left = len(e.local)
	return e
}

// insert takes d for partition p and returns the rank it goes to.
func (e *engine) insert(p PartID, d *buffer.PackedData) comm.Rank {
	dst := e.owner[p]
	e.accepted[p]++
	n := d.Size()
	if dst == e.self {
		if d.Data != nil {
			d.Data.SetHolder(buffer.HeldReceived)
		}
		e.index[p].add(e.self, e.ownSeq, d)
		e.ownSeq++
		e.stats.ChunksLocal++
		e.stats.BytesLocal += n
		return dst
	}
	m := comm.Message{Part: uint32(p), Meta: d.Meta, Data: d.Data}
	e.queued += n
	e.out.Push(dst, m)
	e.stats.ChunksSent++
	e.stats.BytesSent += n
	e.stats.SentTo[dst] += n
	return dst
}

// next takes messages for dst from the outbox; see comm.Handler.
func (e *engine) next(dst comm.Rank, room int, ms []comm.Message) []comm.Message {
	had := len(ms)
	ms = e.out.Take(dst, room, ms)
	for _, m := range ms[had:] {
		if !m.Control {
			e.queued -= m.Size()
		}
	}
	return ms
}

// finishInsert ends inserting: it counts this rank's own partitions, queues a
// finish message for every other owner, and returns those owners.
func (e *engine) finishInsert() ([]comm.Rank, error) {
	e.finished = true
	lists := make([][]partCount, e.size)
	owns := make([]bool, e.size)
	for p, n := range e.accepted {
		r := e.owner[p]
		owns[r] = true
		if n > 0 {
			lists[r] = append(lists[r], partCount{PartID(p), n})
		}
	}
	var to []comm.Rank
	for r, entries := range lists {
		if r := comm.Rank(r); owns[r] && r != e.self {
			e.out.Push(r, comm.Message{Control: true, Meta: appendFinish(nil, entries)})
			to = append(to, r)
		}
	}
	if owns[e.self] {
		return to, e.count(e.self, lists[e.self])
	}
	return to, nil
}

// gotFinish takes the finish message of src.
func (e *engine) gotFinish(src comm.Rank, b []byte) error {
	entries, err := decodeFinish(b, len(e.owner), len(e.local))
	if err != nil {
		return fmt.Errorf("rank %d: %w", src, err)
	}
	return e.count(src, entries)
}

// count adds what src has counted; after the last rank, partitions can be
// complete.
func (e *engine) count(src comm.Rank, entries []partCount) error {
	if e.finish[src] {
		return fmt.Errorf("rank %d: %w: second one", src, errFinish)
	}
	for _, c := range entries {
		p := e.index[c.part]
		if p == nil {
			return fmt.Errorf("rank %d: %w: counts partition %d, which rank %d does not own", src, errFinish, c.part, e.self)
		}
		if p.expect+c.count < p.expect {
			return fmt.Errorf("rank %d: %w: %d chunks more in partition %d", src, errFinish, c.count, c.part)
		}
		p.expect += c.count
	}
	e.finish[src] = true
	if e.finishes++; e.finishes < e.size {
		return nil
	}
	for _, id := range e.local {
		if err := e.check(e.index[id]); err != nil {
			return err
		}
	}
	return nil
}

// check completes p if everything has arrived.
func (e *engine) check(p *partition) error {
	if e.finishes < e.size || p.complete || p.got < p.expect {
		return nil
	}
	if p.got > p.expect {
		return fmt.Errorf("partition %d has %d chunks, the ranks counted %d", p.id, p.got, p.expect)
	}
	p.seal()
	e.ready = append(e.ready, p.id)
	e.left--
	return nil
}

// partFor returns the inbox of a partition named by another rank.
func (e *engine) partFor(src comm.Rank, part uint32) (*partition, error) {
	p := e.index[PartID(part)]
	if p == nil {
		return nil, fmt.Errorf("rank %d sent a chunk of partition %d, which rank %d does not own", src, part, e.self)
	}
	if p.complete {
		return nil, fmt.Errorf("rank %d sent another chunk of partition %d, which is complete", src, part)
	}
	return p, nil
}

// deliver takes a whole chunk of another rank.
func (e *engine) deliver(src comm.Rank, seq uint64, m comm.Message) error {
	p, err := e.partFor(src, m.Part)
	if err != nil {
		return err
	}
	d := &buffer.PackedData{Meta: m.Meta, Data: m.Data}
	e.stats.ChunksReceived++
	e.stats.BytesReceived += d.Size()
	p.add(src, seq, d)
	return e.check(p)
}

// slabPlan is the memory that a batch needs: new slabs for the partitions
// whose current one has too little room.
type slabPlan struct {
	parts []*partition
	sizes []int64
	total int64 // of blocks
}

// plan checks a batch and says what memory it needs.
func (e *engine) plan(src comm.Rank, b *comm.Batch) (slabPlan, error) {
	need := map[*partition]int{}
	var plan slabPlan
	var last *partition
	for r := range b.Records() {
		p := last
		if p == nil || p.id != PartID(r.Part) {
			var err error
			if p, err = e.partFor(src, r.Part); err != nil {
				return plan, err
			}
			last = p
		}
		n, seen := need[p]
		if !seen {
			plan.parts = append(plan.parts, p)
		}
		need[p] = n + slabRecord(len(r.Meta), len(r.Data))
	}
	keep := plan.parts[:0]
	for _, p := range plan.parts {
		if n := need[p]; n > p.free() {
			size := p.nextSlab(n)
			keep = append(keep, p)
			plan.sizes = append(plan.sizes, size)
			plan.total += buffer.BlockSize(size)
		}
	}
	plan.parts = keep
	return plan, nil
}

// unpack copies a planned batch into slabs taken from res.
func (e *engine) unpack(src comm.Rank, b *comm.Batch, plan slabPlan, res *buffer.Reservation) error {
	for i, p := range plan.parts {
		buf, err := res.Alloc(plan.sizes[i], nil)
		if err != nil {
			return err
		}
		p.use(&slab{buf: buf, mem: hostBytes(buf)}, plan.sizes[i])
	}
	seq := b.First
	var last *partition
	for r := range b.Records() {
		p := last
		if p == nil || p.id != PartID(r.Part) {
			p = e.index[PartID(r.Part)]
			last = p
		}
		if p.complete {
			return fmt.Errorf("rank %d sent more chunks of partition %d than the ranks counted", src, p.id)
		}
		p.addSmall(src, b.First, seq, r)
		e.stats.ChunksReceived++
		e.stats.BytesReceived += int64(len(r.Meta) + len(r.Data))
		seq++
		if err := e.check(p); err != nil {
			return err
		}
	}
	return nil
}

// done reports whether this rank has inserted and received everything.
func (e *engine) done() bool { return e.finished && e.left == 0 }

// waiting reports whether a complete partition still holds chunks.
func (e *engine) waiting() bool {
	for _, id := range e.ready {
		if e.index[id].items.Len() > 0 {
			return true
		}
	}
	return false
}

// release frees everything.
func (e *engine) release() {
	e.out.Drop()
	e.queued = 0
	for _, p := range e.index {
		p.release()
	}
}
