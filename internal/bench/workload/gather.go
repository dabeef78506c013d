package workload

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"fmt"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
)

// Results travel by the mailbox, not by the collective that is measured, in
// pieces on the Go heap: a full account must not keep rank 0 from learning why.
const (
	gatherTag   = 1
	gatherPiece = 256 << 10 // bytes
)

// gather brings the bytes of every rank to rank 0, in rank order; the others
// get nil.
func (r *Rank) gather(ctx context.Context, mine []byte) ([][]byte, error) {
	if r.ID != 0 {
		return nil, r.send(ctx, 0, mine)
	}
	all := [][]byte{mine}
	for src := 1; src < r.Size; src++ {
		b, err := r.receive(ctx, comm.Rank(src))
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

func (r *Rank) send(ctx context.Context, dst comm.Rank, b []byte) error {
	piece := binary.AppendUvarint(nil, uint64(len(b)))
	for {
		if err := r.Comm.Mailbox().Send(ctx, dst, gatherTag, &buffer.PackedData{Meta: piece}); err != nil {
			return fmt.Errorf("send results: %w", err)
		}
		if len(b) == 0 {
			return nil
		}
		n := min(len(b), gatherPiece)
		piece, b = b[:n], b[n:]
	}
}

func (r *Rank) receive(ctx context.Context, src comm.Rank) ([]byte, error) {
	var b []byte
	total := uint64(0)
	for first := true; first || uint64(len(b)) < total; first = false {
		p, err := r.Comm.Mailbox().Recv(ctx, src, gatherTag)
		if err != nil {
			return nil, fmt.Errorf("receive results: %w", err)
		}
		if first {
			total, _ = binary.Uvarint(p.Meta)
		} else {
			b = append(b, p.Meta...)
		}
		p.Release()
	}
	return b, nil
}

// gatherValues is gather for values.
func gatherValues[T any](ctx context.Context, r *Rank, mine T) ([]T, error) {
	if r.ID == 0 && r.Size == 1 {
		return []T{mine}, nil
	}
	var out bytes.Buffer
	if err := gob.NewEncoder(&out).Encode(mine); err != nil {
		return nil, fmt.Errorf("send results: %w", err)
	}
	parts, err := r.gather(ctx, out.Bytes())
	if err != nil || parts == nil {
		return nil, err
	}
	all := make([]T, len(parts))
	all[0] = mine
	for i := 1; i < len(parts); i++ {
		if err := gob.NewDecoder(bytes.NewReader(parts[i])).Decode(&all[i]); err != nil {
			return nil, fmt.Errorf("receive results of rank %d: %w", i, err)
		}
	}
	return all, nil
}
