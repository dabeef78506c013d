package buffer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// mustAlloc is alloc without the cost of Helper.
func mustAlloc(v *Reservation, size int64) *Buffer {
	b, err := v.Alloc(size, nil)
	if err != nil {
		return nil
	}
	return b
}

// BenchmarkReserveAllocRelease is the life of one buffer. Each goroutine is a
// rank with a Resource of its own on the shared Arena, or all are one rank.
func BenchmarkReserveAllocRelease(b *testing.B) {
	ctx := context.Background()
	life := func(b *testing.B, r *Resource, size int64) {
		v, err := r.Reserve(ctx, size, Host)
		if err != nil {
			b.Error(err)
			return
		}
		mustAlloc(v, size).Release()
		v.Release()
	}
	for _, size := range []int64{64, 4096, 1 << 20} {
		name := formatBytes(size)
		b.Run(name, func(b *testing.B) {
			r := newResource(b, NewArena(), 1<<30)
			b.ReportAllocs()
			for b.Loop() {
				life(b, r, size)
			}
		})
		b.Run(name+"/one rank", func(b *testing.B) {
			r := newResource(b, NewArena(), 1<<30)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					life(b, r, size)
				}
			})
		})
		b.Run(name+"/ranks", func(b *testing.B) {
			a := NewArena()
			b.RunParallel(func(pb *testing.PB) {
				r := newResource(b, a, 1<<30)
				for pb.Next() {
					life(b, r, size)
				}
			})
		})
	}
}

// BenchmarkAlloc allocates from one large reservation and keeps the buffers.
func BenchmarkAlloc(b *testing.B) {
	for _, size := range []int64{64, 4096} {
		b.Run(formatBytes(size), func(b *testing.B) {
			const batch = 4096
			r := newResource(b, NewArena(), 1<<30)
			var buffers [batch]*Buffer
			b.ReportAllocs()
			for n := 0; n < b.N; n += batch {
				v, _ := r.TryReserve(batch * size)
				for i := range buffers {
					buffers[i] = mustAlloc(v, size)
				}
				b.StopTimer()
				for _, x := range buffers {
					x.Release()
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkRequest is one receive under pressure: a release that grants the
// oldest of many parked requests.
func BenchmarkRequest(b *testing.B) {
	for _, parked := range []int{1, 1000} {
		b.Run(fmt.Sprintf("parked=%d", parked), func(b *testing.B) {
			r := newResource(b, NewArena(), 1<<20)
			v, _ := r.TryReserve(1 << 20)
			ready := func(granted *Reservation, err error) { v = granted }
			for range parked - 1 {
				r.Request(1<<20, nil, ready)
			}
			b.ReportAllocs()
			for b.Loop() {
				r.Request(1<<20, nil, ready)
				v.Release()
			}
		})
	}
}

// BenchmarkAdopt is an in-process hand-over.
func BenchmarkAdopt(b *testing.B) {
	a := NewArena()
	var rank [2]*Resource
	for i := range rank {
		rank[i] = newResource(b, a, 1<<30)
	}
	v, _ := rank[0].TryReserve(1 << 20)
	x := mustAlloc(v, 1<<20)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		v, _ := rank[(i+1)%2].TryReserve(1 << 20)
		if err := v.Adopt(x); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAtLimit allocates and fills random sizes with the limit full. carved
// is the part of the bytes that lay on pages touched for the first time.
func BenchmarkAtLimit(b *testing.B) {
	const limit = 64 << 20
	for _, c := range []struct {
		name      string
		low, high int64
	}{
		{"1 MiB", 1 << 20, 1 << 20},
		{"0.9 to 1.1 MiB", 900 << 10, 1100 << 10},
		{"1.9 to 2.3 MiB", 1900 << 10, 2300 << 10},
		{"64 KiB to 8 MiB", 64 << 10, 8 << 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := NewArena()
			r := newResource(b, a, limit)
			rng := rand.New(rand.NewPCG(1, 2))
			var live []*Buffer
			var bytes int64
			step := func() {
				size := logUniform(rng, c.low, c.high+1)
				v, ok := r.TryReserve(size)
				for ; !ok; v, ok = r.TryReserve(size) {
					live = releaseOne(rng, live)
				}
				x := mustAlloc(v, size)
				fill(x, 1)
				live = append(live, x)
				bytes += x.Cap()
			}
			for range 500 {
				step()
			}
			bytes = 0
			carved := a.Stats().Carved
			for b.Loop() {
				step()
			}
			b.ReportMetric(float64(a.Stats().Carved-carved)/float64(bytes), "carved")
			b.ReportMetric(float64(a.Stats().Mapped), "mapped")
		})
	}
}
