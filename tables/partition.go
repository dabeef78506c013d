package tables

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sluice-engine/sluice/buffer"
)

// Config says how a Partitioner splits rows. All ranks of an exchange use an
// equal Config, but for MaxChunk.
type Config struct {
	Keys  []string // columns to hash, in this order; at least one
	Parts int      // partitions, 1 to 2^24
	Seed  uint64   // of the hash
	// MaxChunk bounds the body of a chunk in bytes; 0: 8 MiB. Only a single row
	// that is larger makes a larger chunk.
	MaxChunk int64
}

const (
	defaultMaxChunk = 8 << 20 // bytes
	maxParts        = 1 << 24 // each costs a look per batch, and 4 bytes
)

// validate reports every fault together and gives the key columns.
func (c Config) validate(t *tree) ([]int, error) {
	cols, err := t.keyColumns(c.Keys)
	faults := []error{err}
	if c.Parts < 1 || c.Parts > maxParts {
		faults = append(faults, fmt.Errorf("%d partitions, 1 to %d are possible", c.Parts, maxParts))
	}
	if c.MaxChunk < 0 {
		faults = append(faults, fmt.Errorf("chunks of at most %d bytes", c.MaxChunk))
	}
	return cols, errors.Join(faults...)
}

// A Partitioner splits record batches by the hash of key columns: a row with
// hash h belongs to partition PartitionOf(h, Parts). It keeps scratch memory,
// about 16 bytes per row of a batch on the Go heap, and serves one goroutine.
type Partitioner struct {
	codec  *Codec
	cfg    Config
	hasher *Hasher
	plan   *plan
	hashes []uint64
	parts  []uint32
	order  []int32 // rows of the window, by partition
	starts []int32 // where each partition begins in order, and one more
}

// NewPartitioner returns a Partitioner whose chunks c can unpack. It reports
// all that is wrong with cfg; see ErrKeyType and ErrNoColumn.
func NewPartitioner(c *Codec, cfg Config) (*Partitioner, error) {
	cols, err := cfg.validate(c.tree)
	if err != nil {
		return nil, fmt.Errorf("tables: partition: %w", err)
	}
	if cfg.MaxChunk == 0 {
		cfg.MaxChunk = defaultMaxChunk
	}
	return &Partitioner{
		codec:  c,
		cfg:    cfg,
		hasher: newHasher(c.tree, cols, cfg.Seed),
		plan:   newPlan(c.tree),
	}, nil
}

// Chunk is some rows of one partition.
type Chunk struct {
	Part uint32
	Rows int
	Data *buffer.PackedData
}

// Partition splits the batch into chunks, by partition in ascending order and
// in the order of the rows within it (again for each 2^20 rows). Empty
// partitions make no chunk. Memory is claimed chunk by chunk, when the loop
// asks for it, and the chunk is the loop's; an error comes last.
func (p *Partitioner) Partition(ctx context.Context, mem *buffer.Resource, batch arrow.RecordBatch) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if err := p.codec.tree.verify(batch, &p.hasher.chk); err != nil {
			yield(Chunk{}, fmt.Errorf("tables: partition: %w", err))
			return
		}
		part := uint32(0)
		s := splitter{codec: p.codec, plan: p.plan, mem: mem, max: p.cfg.MaxChunk}
		s.emit = func(rows int, d *buffer.PackedData) bool {
			return yield(Chunk{Part: part, Rows: rows, Data: d}, nil)
		}
		for at := int64(0); at < batch.NumRows(); at += window {
			n := int(min(window, batch.NumRows()-at))
			p.sort(batch, int(at), n)
			for i, to := range p.starts[1:] {
				rows := p.order[p.starts[i]:to]
				if part = uint32(i); len(rows) == 0 {
					continue
				}
				if len(rows) == n {
					rows = nil // all of them: copied in one piece
				}
				if s.rows(ctx, batch, int(at), rows, int(to-p.starts[i])) {
					continue
				}
				if s.err != nil {
					yield(Chunk{}, fmt.Errorf("tables: partition %d: %w", part, s.err))
				}
				return
			}
		}
	}
}

// sort fills order and starts for n rows from at: a counting sort.
func (p *Partitioner) sort(batch arrow.RecordBatch, at, n int) {
	p.hashes, p.parts, p.order = sized(p.hashes, n), sized(p.parts, n), sized(p.order, n)
	p.starts = sized(p.starts, p.cfg.Parts+1)
	p.hasher.rows(batch, p.hasher.cols, at, p.hashes)
	clear(p.starts)
	for i, h := range p.hashes {
		part := PartitionOf(h, p.cfg.Parts)
		p.parts[i] = part
		p.starts[part+1]++
	}
	for i := range p.cfg.Parts {
		p.starts[i+1] += p.starts[i]
	}
	for i, part := range p.parts {
		p.order[p.starts[part]] = int32(i)
		p.starts[part]++
	}
	copy(p.starts[1:], p.starts[:p.cfg.Parts]) // each start had moved to its end
	p.starts[0] = 0
}
