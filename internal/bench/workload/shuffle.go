package workload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/zeebo/xxh3"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/internal/faults"
	"github.com/sluice-engine/sluice/shuffle"
)

// Shuffle is a workload of random bytes: each rank inserts Chunks chunks of
// ChunkBytes incompressible bytes into every partition, and reads every byte of
// what it gets.
type Shuffle struct {
	Plan
	ChunkBytes   int64            `json:"chunk_bytes"`
	Chunks       int64            `json:"chunks_per_partition"`
	PartsPerRank int              `json:"partitions_per_rank"`
	Owner        Owner            `json:"owner"`
	SendOrder    comm.Order       `json:"send_order"`
	Faults       *faults.Injector `json:"-"`
}

// minChunks is how many chunks a limit must hold for work to go on.
const minChunks = 16

// ErrLimit marks a limit that is too small for the chunks asked for.
var ErrLimit = errors.New("limit is too small")

// CheckLimit refuses a limit of host memory, in bytes, below 16 chunks.
func CheckLimit(limit, chunk int64) error {
	if need := minChunks * buffer.BlockSize(chunk); limit < need {
		return fmt.Errorf("%w: %d bytes of host memory, but %d chunks of %d bytes take %d", ErrLimit, limit, minChunks, chunk, need)
	}
	return nil
}

// perChunk bounds what one chunk takes besides its bytes.
const perChunk = 200 // bytes

// Footprint is the memory in bytes that a run on n ranks of one machine takes:
// all chunks are there before a partition is complete. It may be beyond what an
// integer holds.
func (w *Shuffle) Footprint(n int) float64 {
	chunks := float64(w.PartsPerRank) * float64(n) * float64(n) * float64(w.Chunks)
	return chunks * (float64(buffer.BlockSize(w.ChunkBytes)) + perChunk)
}

// chunkMeta is the metadata of a chunk: its source rank, and its number among
// the chunks of that rank for that partition. Four bytes each.
const chunkMeta = 8

// Run runs the workload on one rank; rank 0 gets the results by run and rank.
func (w *Shuffle) Run(ctx context.Context, r *Rank) ([][]RankRun, error) {
	return measure(ctx, r, w.Plan, w.once)
}

func (w *Shuffle) once(ctx context.Context, r *Rank, clock *clock, res *RankRun) error {
	parts := w.PartsPerRank * r.Size
	s, err := shuffle.New(r.Comm, r.Mem, shuffle.Config{Op: r.scope.NextOp(), Parts: parts, Owner: w.Owner.fn(), Order: w.SendOrder})
	if err != nil {
		return err
	}
	err = w.exchange(ctx, r, s, clock, res)
	res.traffic(s.Stats())
	w.dropMeta(res, parts, r.Size)
	return errors.Join(err, s.Close())
}

func (w *Shuffle) exchange(ctx context.Context, r *Rank, s *shuffle.ShufflerAsync, clock *clock, res *RankRun) error {
	parts := w.PartsPerRank * r.Size
	res.In.Parts, res.Out.Parts = make([]PartSum, parts), make([]PartSum, parts)
	if err := w.insert(ctx, r, s, clock, res); err != nil {
		return err
	}
	if err := s.InsertFinished(); err != nil {
		return err
	}
	for {
		stop := clock.waiting()
		p, err := s.NextPartition(ctx)
		stop()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		clock.firstPartition()
		if err := w.extract(ctx, r, s, p, res); err != nil {
			return err
		}
	}
}

// insert makes the chunks, in turn over the partitions. Memory for small ones is
// claimed in batches.
func (w *Shuffle) insert(ctx context.Context, r *Rank, s *shuffle.ShufflerAsync, clock *clock, res *RankRun) error {
	const claim = 64 << 10 // bytes
	block := buffer.BlockSize(w.ChunkBytes)
	batch := max(1, claim/block)
	room, err := r.Mem.Reserve(ctx, 0, buffer.Host)
	if err != nil {
		return fmt.Errorf("make chunk: %w", err)
	}
	defer func() { room.Release() }()
	var metas []byte
	for n := range w.Chunks {
		for p := range res.In.Parts {
			if room.Left() < block {
				if err := ctx.Err(); err != nil {
					return fmt.Errorf("make chunk: %w", err)
				}
				stop := clock.waiting()
				next, err := r.Mem.Reserve(ctx, batch*block, buffer.Host)
				stop()
				if err != nil {
					return fmt.Errorf("make chunk: %w", err)
				}
				room.Release()
				room, metas = next, make([]byte, batch*chunkMeta)
			}
			meta := metas[:chunkMeta:chunkMeta]
			metas = metas[chunkMeta:]
			if err := w.insertOne(ctx, r, s, room, meta, p, n, res); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *Shuffle) insertOne(ctx context.Context, r *Rank, s *shuffle.ShufflerAsync, room *buffer.Reservation, meta []byte, p int, n int64, res *RankRun) error {
	data, err := room.Alloc(w.ChunkBytes, nil)
	if err != nil {
		return fmt.Errorf("make chunk: %w", err)
	}
	binary.LittleEndian.PutUint32(meta, uint32(r.ID))
	binary.LittleEndian.PutUint32(meta[4:], uint32(n))
	sum := &res.In.Parts[p]
	err = data.OnHost(ctx, func(b []byte) error {
		fill(b, uint64(r.ID)<<48^uint64(p)<<24^uint64(n))
		if w.Validate {
			sum.Chunks++
			sum.Sum += chunkHash(uint32(p), meta, b)
		}
		return nil
	})
	if err != nil {
		data.Release()
		return fmt.Errorf("make chunk: %w", err)
	}
	res.In.Chunks++
	return insert(ctx, s, shuffle.PartID(p), &buffer.PackedData{Meta: meta, Data: data})
}

// insert gives d to the shuffle, or back to memory if it was not accepted.
func insert(ctx context.Context, s *shuffle.ShufflerAsync, p shuffle.PartID, d *buffer.PackedData) error {
	err := s.Insert(ctx, p, d)
	if err != nil && !errors.Is(err, shuffle.ErrAccepted) {
		d.Release()
	}
	return err
}

// chunkHash stands for a chunk with its place.
func chunkHash(part uint32, meta, data []byte) uint64 {
	return xxh3.HashSeed(data, scramble(binary.LittleEndian.Uint64(meta)^uint64(part)<<16))
}

// extract reads every byte of a partition and checks that the chunks of each
// source come in the order of their insertion.
func (w *Shuffle) extract(ctx context.Context, r *Rank, s *shuffle.ShufflerAsync, p shuffle.PartID, res *RankRun) error {
	next := make([]uint32, r.Size)
	for d, err := range s.Extract(ctx, p) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			d.Release()
			return fmt.Errorf("read chunk: %w", err)
		}
		err = d.Data.OnHost(ctx, func(b []byte) error {
			act := w.Faults.Next()
			act.Corrupt(b)
			for range act.Times() {
				w.take(act.Part(uint32(p)), d.Meta, b, next, res)
			}
			return nil
		})
		d.Release()
		if err != nil {
			return fmt.Errorf("read chunk: %w", err)
		}
	}
	return nil
}

// take is given each chunk that was received.
func (w *Shuffle) take(part uint32, meta, data []byte, next []uint32, res *RankRun) {
	res.Out.Chunks++
	if !w.Validate {
		res.sink += readAll(data)
		return
	}
	if len(meta) != chunkMeta {
		res.Misplaced++
		return
	}
	source, n := binary.LittleEndian.Uint32(meta), binary.LittleEndian.Uint32(meta[4:])
	if int(source) >= len(next) || n != next[source] {
		res.Misplaced++
	}
	if int(source) < len(next) {
		next[source] = n + 1
	}
	sum := &res.Out.Parts[part%uint32(len(res.Out.Parts))]
	sum.Chunks++
	sum.Sum += chunkHash(part, meta, data)
}

// dropMeta leaves the payload in the counts of bytes.
func (w *Shuffle) dropMeta(res *RankRun, parts, size int) {
	res.BytesSent -= chunkMeta * res.ChunksSent
	res.BytesReceived -= chunkMeta * res.ChunksReceived
	res.BytesSelf -= chunkMeta * res.ChunksSelf
	for rank, n := range w.Owner.partsOf(parts, size) {
		res.SentTo[rank] -= chunkMeta * n * w.Chunks
	}
}
