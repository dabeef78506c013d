package buffer_test

import (
	"context"
	"fmt"

	"github.com/sluice-engine/sluice/buffer"
)

// Reserve memory, allocate from it, fill the buffer, release it.
func Example() {
	ctx := context.Background()
	var cfg buffer.Config
	cfg.Limits[buffer.Host] = buffer.Bytes(1 << 20)
	mem, err := buffer.NewResource(nil, nil, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := mem.Reserve(ctx, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Release()
	b, err := v.Alloc(1000, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = b.OnHost(ctx, func(p []byte) error {
		copy(p, "payload")
		return nil
	})
	fmt.Println(b.Len(), b.Type(), err)
	fmt.Println("in use:", mem.Usage(buffer.Host).Used)
	b.Release()
	fmt.Println("in use:", mem.Usage(buffer.Host).Used, mem.Close())
	// Output:
	// 1000 host <nil>
	// in use: 1024
	// in use: 0 <nil>
}

// Hand a buffer from one rank of a process to another without copying it.
func ExampleReservation_Adopt() {
	ctx := context.Background()
	arena := buffer.NewArena()
	sender, _ := arena.NewResource(nil, nil, buffer.Config{})
	receiver, _ := arena.NewResource(nil, nil, buffer.Config{})

	out, _ := sender.Reserve(ctx, 4096)
	b, _ := out.Alloc(4096, nil)

	in, _ := receiver.Reserve(ctx, b.Cap())
	in.SetHolder(buffer.HeldReceived)
	fmt.Println(in.Adopt(b))
	fmt.Println(sender.Usage(buffer.Host).Used, receiver.Usage(buffer.Host).Held[buffer.HeldReceived])
	b.Release()
	fmt.Println(sender.Close(), receiver.Close())
	// Output:
	// <nil>
	// 0 4096
	// <nil> <nil>
}
