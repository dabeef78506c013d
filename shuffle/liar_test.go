package shuffle

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/commtest"
	"github.com/sluice-engine/sluice/comm/inproc"
)

// liar is a rank that joins a shuffle and sends what no shuffle would, in
// batches where comm makes them.
type liar struct {
	lies []comm.Message

	mu  sync.Mutex
	err error
}

func (l *liar) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *liar) Next(_ comm.Rank, _ int, ms []comm.Message) []comm.Message {
	ms = append(ms, l.lies...)
	l.lies = nil
	return ms
}

func (l *liar) Deliver(_ comm.Rank, _ uint64, m comm.Message) {
	if m.Data != nil {
		m.Data.Release()
	}
}

func (l *liar) Batch(_ comm.Rank, b *comm.Batch) { b.Release() }
func (l *liar) Stalled(bool) bool                { return false }

func (l *liar) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

// TestLiar: whatever a rank sends that breaks the rules ends the shuffle on all
// ranks, with an error that says who did what; nothing is leaked.
func TestLiar(t *testing.T) {
	small := func(parts ...uint32) (ms []comm.Message) {
		for _, p := range parts {
			ms = append(ms, comm.Message{Part: p, Meta: []byte("meta")})
		}
		return ms
	}
	finish := func(entries ...partCount) comm.Message {
		return comm.Message{Control: true, Meta: appendFinish(nil, entries)}
	}
	// Partitions 0 and 2 are the honest rank's. Frames may overtake each other,
	// so that some lies are found in one of several ways.
	tests := []struct {
		name string
		lies []comm.Message
		want []string
	}{
		{"chunk of the sender's partition", small(1), []string{"rank 1 sent a chunk of partition 1, which rank 0 does not own"}},
		{"batch with one", small(0, 1, 0), []string{"rank 1 sent a chunk of partition 1, which rank 0 does not own"}},
		{"batch with one of no partition", small(0, 0, 3), []string{"rank 1 sent a chunk of partition 3, which rank 0 does not own"}},
		{"batch of more than counted", append(small(0, 0, 0), finish(partCount{0, 2})), []string{
			"partition 0 has 3 chunks, the ranks counted 2",
			"rank 1 sent more chunks of partition 0 than the ranks counted",
		}},
		{"batch after all that was counted", slices.Concat(small(0), []comm.Message{finish(partCount{0, 1}, partCount{2, 1})}, small(0, 0)), []string{
			"partition 0 has 3 chunks, the ranks counted 1",
			"partition 0 has 2 chunks, the ranks counted 1",
			"rank 1 sent more chunks of partition 0 than the ranks counted",
			"rank 1 sent another chunk of partition 0, which is complete",
		}},
		{"malformed finish", []comm.Message{{Control: true, Meta: []byte{9}}}, []string{"rank 1: malformed finish message: 9 entries for 2 partitions"}},
		{"finish twice", []comm.Message{finish(partCount{0, 1}), finish(partCount{0, 1})}, []string{"rank 1: malformed finish message: second one"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := commtest.NewJob(t, inproc.New, 2, commtest.Options{})
			errs := j.Try(func(me comm.Rank, c *comm.Communicator) error {
				if me == 1 {
					l := &liar{lies: slices.Clone(tt.lies)}
					port, err := c.Open(1, fingerprint([]comm.Rank{0, 1, 0}), func(*comm.Port) comm.Handler { return l })
					if err != nil {
						return err
					}
					port.Notify(0)
					if err := port.Wait(j.Ctx, func() bool { return l.failure() != nil }); err != nil {
						return err
					}
					port.Close(nil)
					return l.failure()
				}
				s, err := New(c, j.Mem[me], Config{Op: 1, Parts: 3})
				if err != nil {
					return err
				}
				err = s.InsertFinished()
				if err == nil {
					err = s.Wait(j.Ctx)
				}
				for _, e := range s.Extract(j.Ctx, 0) { // fails as well, whatever had come
					if e == nil {
						err = errors.New("a chunk of a failed shuffle")
					}
				}
				return errors.Join(err, s.Close())
			})
			for r, err := range errs {
				says := func(text string) bool { return err != nil && strings.Contains(err.Error(), text) }
				if pe := (*comm.PeerError)(nil); !errors.As(err, &pe) || !slices.ContainsFunc(tt.want, says) {
					t.Errorf("rank %d: %v\nwant one of %q", r, err, tt.want)
				}
			}
		})
	}
}
