package buffer

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// resident returns the bytes of memory behind the mappings of a: Rss without
// what the kernel may take at any time.
func resident(t *testing.T, a *Arena) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	ranges := a.Ranges()
	var kib int64
	ours := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			ours = false
			for _, r := range ranges {
				ours = ours || from < r[1] && r[0] < to
			}
			continue
		}
		if rest, ok := strings.CutPrefix(line, "Rss:"); ok && ours {
			kib += parseKiB(t, rest)
		}
		if rest, ok := strings.CutPrefix(line, "LazyFree:"); ok && ours {
			kib -= parseKiB(t, rest)
		}
	}
	return kib << 10
}

func parseKiB(t *testing.T, s string) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscanf(s, "%d kB", &n); err != nil {
		t.Fatalf("smaps: %q: %v", s, err)
	}
	return n
}

// Random mixed sizes at the limit: what the kernel counts stays within the
// limit and two regions, whatever was kept for whom.
func TestResidentWithinLimit(t *testing.T) {
	for _, limit := range []int64{1 << 20, 8 << 20, 64 << 20} {
		for _, mix := range []struct {
			name       string
			low, high  int64
			operations int
		}{
			{"all", 64, limit / 8, 3000},
			{"small", 64, 16 << 10, 20000},
			{"large", limit / 64, limit / 3, 300},
		} {
			t.Run(fmt.Sprintf("%s/%s", formatBytes(limit), mix.name), func(t *testing.T) {
				region := min(int64(hugePage), limit/8)
				a := NewArena()
				r := newResource(t, a, limit)
				rng := rand.New(rand.NewPCG(1, uint64(limit)))
				var live []*Buffer
				worst := int64(0)
				for i := range mix.operations {
					size := logUniform(rng, mix.low, mix.high)
					v, ok := r.TryReserve(size)
					for ; !ok; v, ok = r.TryReserve(size) {
						live = releaseOne(rng, live)
					}
					b := alloc(t, v, size)
					fill(b, byte(i))
					live = append(live, b)
					if i%(mix.operations/50) == 0 {
						rss := resident(t, a)
						worst = max(worst, rss)
						if err := a.Check(); err != nil {
							t.Fatalf("operation %d: %v", i, err)
						}
						if stats := a.Stats(); rss > stats.Footprint {
							t.Fatalf("operation %d: resident %d, counted %d", i, rss, stats.Footprint)
						}
					}
				}
				t.Logf("worst %d of %d (%+.1f%%); %+v", worst, limit, 100*float64(worst-limit)/float64(limit), a.Stats())
				if worst > limit+2*region {
					t.Errorf("resident %d, limit %d and 2 regions are %d", worst, limit, limit+2*region)
				}
				if worst < limit/2 {
					t.Errorf("resident %d of limit %d: the test does not reach the limit", worst, limit)
				}
				for len(live) > 0 {
					live = releaseOne(rng, live)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				if s := a.Stats(); s.Mapped != 0 || s.Footprint != 0 || s.Used != 0 {
					t.Errorf("after Close: %+v", s)
				}
			})
		}
	}
}

func logUniform(rng *rand.Rand, low, high int64) int64 {
	return int64(math.Exp(math.Log(float64(low)) + rng.Float64()*math.Log(float64(high)/float64(low))))
}

func releaseOne(rng *rand.Rand, live []*Buffer) []*Buffer {
	i := rng.IntN(len(live))
	live[i].Release()
	live[i] = live[len(live)-1]
	return live[:len(live)-1]
}

func newResource(t testing.TB, a *Arena, limit int64) *Resource {
	t.Helper()
	var cfg Config
	cfg.Limits[Host] = Bytes(limit)
	r, err := a.NewResource(nil, nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func alloc(t testing.TB, v *Reservation, size int64) *Buffer {
	t.Helper()
	b, err := v.Alloc(size, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fill(b *Buffer, with byte) {
	_ = b.OnHost(context.Background(), func(p []byte) error {
		for i := range p {
			p[i] = with
		}
		return nil
	})
}
