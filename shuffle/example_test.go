package shuffle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/inproc"
	"github.com/sluice-engine/sluice/shuffle"
)

// Three ranks in one process: each inserts a greeting for each of six
// partitions, and takes those that it owns as they become complete.
func Example() {
	lines := make([][]string, 3)
	arena := buffer.NewArena() // of one process
	var wg sync.WaitGroup
	for rank, transport := range inproc.New(3) {
		wg.Go(func() {
			var err error
			if lines[rank], err = greet(context.Background(), arena, transport); err != nil {
				log.Printf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
	for rank, ls := range lines {
		for _, l := range ls {
			fmt.Printf("rank %d: %s\n", rank, l)
		}
	}
	// Output:
	// rank 0: partition 0: 3 chunks, 39 bytes
	// rank 0: partition 3: 3 chunks, 39 bytes
	// rank 1: partition 1: 3 chunks, 39 bytes
	// rank 1: partition 4: 3 chunks, 39 bytes
	// rank 2: partition 2: 3 chunks, 39 bytes
	// rank 2: partition 5: 3 chunks, 39 bytes
}

// greet is what one rank does.
func greet(ctx context.Context, arena *buffer.Arena, transport comm.Transport) (lines []string, err error) {
	mem, err := arena.NewResource(nil, nil, buffer.Config{})
	if err != nil {
		return nil, err
	}
	c, err := comm.New(transport, mem, comm.Config{})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.Abort(err) // or the other ranks would wait for this one
		}
		err = errors.Join(err, c.Close(ctx), mem.Close())
	}()
	s, err := shuffle.New(c, mem, shuffle.Config{Op: 1, Parts: 6})
	if err != nil {
		return nil, err
	}
	for p := range shuffle.PartID(6) {
		d, err := pack(ctx, mem, "greeting", "hello")
		if err != nil {
			return nil, err
		}
		if err := s.Insert(ctx, p, d); err != nil {
			if !errors.Is(err, shuffle.ErrAccepted) {
				d.Release()
			}
			return nil, err
		}
	}
	if err := s.InsertFinished(); err != nil {
		return nil, err
	}
	found := map[shuffle.PartID]string{}
	for {
		p, err := s.NextPartition(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		chunks, bytes := 0, int64(0)
		for d, err := range s.Extract(ctx, p) {
			if err != nil {
				return nil, err
			}
			chunks++
			bytes += d.Size()
			d.Release()
		}
		found[p] = fmt.Sprintf("partition %d: %d chunks, %d bytes", p, chunks, bytes)
	}
	for _, p := range s.LocalPartitions() { // rising, for the example's sake
		lines = append(lines, found[p])
	}
	return lines, s.Close()
}

// pack copies text into accounted memory.
func pack(ctx context.Context, mem *buffer.Resource, meta, text string) (*buffer.PackedData, error) {
	res, err := mem.Reserve(ctx, int64(len(text)), buffer.Host)
	if err != nil {
		return nil, err
	}
	defer res.Release()
	b, err := res.Alloc(int64(len(text)), nil)
	if err != nil {
		return nil, err
	}
	if err := b.OnHost(ctx, func(p []byte) error { copy(p, text); return nil }); err != nil {
		b.Release()
		return nil, err
	}
	return &buffer.PackedData{Meta: []byte(meta), Data: b}, nil
}
