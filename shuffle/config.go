package shuffle

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/sluice-engine/sluice/comm"
)

// PartID numbers the partitions of a shuffle from 0 to Parts-1.
type PartID uint32

// Owner says on which of size ranks partition p of parts ends. It is pure and
// equal on all ranks.
type Owner func(p PartID, parts, size int) comm.Rank

// RoundRobin gives partition p to rank p mod size.
func RoundRobin(p PartID, _, size int) comm.Rank { return comm.Rank(int(p) % size) }

// Contiguous gives each rank a run of partitions; runs differ by at most one in
// length.
func Contiguous(p PartID, parts, size int) comm.Rank {
	return comm.Rank(uint64(p) * uint64(size) / uint64(parts))
}

// Config describes one shuffle. Op, Parts and Owner are equal on all ranks.
type Config struct {
	// Op is the operation's id: fixed, or from a comm.Scope.
	Op comm.OpID
	// Parts is the number of partitions, 1 to 2^32-1. Each costs every rank
	// some 400 bytes, and its owner 4 KiB of accounted memory once it has a
	// small chunk.
	Parts int
	// Owner places the partitions; nil: RoundRobin.
	Owner Owner `json:"-"`
	// Order says in which order chunks leave for one rank.
	Order comm.Order
	// OutgoingBytes is how many bytes may be queued for other ranks
	// before Insert waits; 0: half the host limit, at most 256 MiB.
	OutgoingBytes int64
}

const maxOutgoing = 256 << 20

func (cfg Config) validate() error {
	var errs []error
	if cfg.Parts < 1 || cfg.Parts > math.MaxUint32 {
		errs = append(errs, fmt.Errorf("parts is %d, not between 1 and %d", cfg.Parts, uint32(math.MaxUint32)))
	}
	if cfg.OutgoingBytes < 0 {
		errs = append(errs, fmt.Errorf("outgoing bytes is %d", cfg.OutgoingBytes))
	}
	if cfg.Order > comm.OrderNone {
		errs = append(errs, fmt.Errorf("unknown send order %d", cfg.Order))
	}
	return errors.Join(errs...)
}

// fingerprint is what must be equal on all ranks. Owners are compared by what
// they do, not by name.
func fingerprint(owner []comm.Rank) comm.Fingerprint {
	h := xxh3.New()
	var b [4]byte
	for _, r := range owner {
		b[0], b[1], b[2], b[3] = byte(r), byte(r>>8), byte(r>>16), byte(r>>24)
		_, _ = h.Write(b[:]) // a hash does not fail
	}
	return comm.Fingerprint{Kind: "shuffle", Params: []comm.Param{
		{Key: "parts", Value: strconv.Itoa(len(owner))},
		{Key: "owners", Value: fmt.Sprintf("%016x", h.Sum64())},
	}}
}

// Errors that callers branch on.
var (
	// ErrFinished: InsertFinished was called before.
	ErrFinished = errors.New("shuffle: inserting has finished")
	// ErrAccepted: ctx ended while Insert waited for room, but the chunk is in.
	ErrAccepted = errors.New("shuffle: chunk accepted")
	// ErrNotLocal: another rank owns the partition.
	ErrNotLocal = errors.New("shuffle: partition belongs to another rank")
	// ErrInvalid: the partition or the chunk cannot be inserted.
	ErrInvalid = errors.New("shuffle: invalid chunk")
	// ErrClosed: the shuffle was closed on this rank.
	ErrClosed = errors.New("shuffle: closed")
)
