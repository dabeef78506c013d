package commtest

import (
	"math/rand/v2"
	"time"

	"github.com/sluice-engine/sluice/comm"
)

// Wire returns ts as transports that behave like a network: payloads are
// copied, and events are held back and given out in an order drawn from seed.
func Wire(ts []comm.Transport, seed uint64) []comm.Transport {
	out := make([]comm.Transport, len(ts))
	for r, t := range ts {
		out[r] = &wire{Transport: t, rng: rand.New(rand.NewPCG(seed, uint64(r)))}
	}
	return out
}

type wire struct {
	comm.Transport
	rng  *rand.Rand
	held []comm.Event
	in   [16]comm.Event
}

func (w *wire) Info() comm.Info {
	i := w.Transport.Info()
	i.HandsOver = false
	i.Name += "+wire"
	return i
}

func (w *wire) Poll(ev []comm.Event, max time.Duration) (int, error) {
	if len(w.held) > 0 {
		max = 0
	}
	n, err := w.Transport.Poll(w.in[:], max)
	for _, e := range w.in[:n] {
		e.Head = append([]byte(nil), e.Head...)
		w.held = append(w.held, e)
	}
	out := 0
	for out < len(ev) && len(w.held) > 0 && w.rng.IntN(4) > 0 {
		i := w.rng.IntN(len(w.held))
		if w.held[i].Kind == comm.EventDown && w.hasFrom(w.held[i].Peer) {
			continue
		}
		ev[out] = w.held[i]
		out++
		last := len(w.held) - 1
		w.held[i], w.held[last] = w.held[last], comm.Event{}
		w.held = w.held[:last]
	}
	return out, err
}

// hasFrom reports whether a frame of peer is held back; EventDown comes last.
func (w *wire) hasFrom(peer comm.Rank) bool {
	for _, e := range w.held {
		if e.Kind == comm.EventArrived && e.Peer == peer {
			return true
		}
	}
	return false
}
