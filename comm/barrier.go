package comm

import "sync/atomic"

// barrierSet runs dissemination barriers (Hensgen, Finkel, Manber 1988): in
// round i a rank tells the one 2^i ahead of it and waits for the one 2^i
// behind; after ceil(log2 P) rounds everybody has heard of everybody. Barriers
// are numbered in call order, so several may be under way.
type barrierSet struct {
	next  uint64
	heard map[barrierRound]bool
	live  map[uint64]*barrier
	over  bool // the job has failed
}

type barrierRound struct {
	seq   uint64
	round uint32
}

// barrier is one call. done and broken are read by the caller.
type barrier struct {
	round  uint32
	done   atomic.Bool
	broken atomic.Bool
}

func (s *barrierSet) init() {
	s.heard = map[barrierRound]bool{}
	s.live = map[uint64]*barrier{}
}

// enter starts the next barrier.
func (s *barrierSet) enter(k *core, b *barrier) {
	if s.over {
		b.end(false)
		k.signal()
		return
	}
	seq := s.next
	s.next++
	s.live[seq] = b
	k.barrierSend(seq, 0)
	s.advance(k, seq)
}

// arrived notes that a peer is in a round.
func (s *barrierSet) arrived(k *core, seq uint64, round uint32) {
	if b := s.live[seq]; seq < s.next && (b == nil || round < b.round) {
		return // a copy
	}
	s.heard[barrierRound{seq, round}] = true
	s.advance(k, seq)
}

func (s *barrierSet) advance(k *core, seq uint64) {
	b := s.live[seq]
	if b == nil {
		return
	}
	for 1<<b.round < k.info.Size {
		at := barrierRound{seq, b.round}
		if !s.heard[at] {
			if from := k.barrierFrom(b.round); k.peers[from].left {
				k.abortAll(from, errLeft)
			}
			return
		}
		delete(s.heard, at)
		b.round++
		k.barrierSend(seq, b.round)
	}
	b.end(true)
	delete(s.live, seq)
	k.signal()
}

// left ends the barriers that wait for a rank that has left the job.
func (s *barrierSet) left(k *core) {
	for seq := range s.live {
		s.advance(k, seq)
	}
}

// fail ends all barriers, now and later.
func (s *barrierSet) fail() {
	s.over = true
	for seq, b := range s.live {
		b.end(false)
		delete(s.live, seq)
	}
}

func (k *core) barrierSend(seq uint64, round uint32) {
	if 1<<round < k.info.Size {
		to := (int(k.info.Rank) + 1<<round) % k.info.Size
		k.urgent(k.peers[to], header{kind: kindBarrier, seq: seq, seg: round}, nil)
	}
}

// maxRound is above the rounds of the largest job.
const maxRound = 31

// barrierFrom is the rank that is waited for in a round.
func (k *core) barrierFrom(round uint32) Rank {
	return Rank((int(k.info.Rank) - 1<<round%k.info.Size + k.info.Size) % k.info.Size)
}

func (b *barrier) end(ok bool) {
	b.broken.Store(!ok)
	b.done.Store(true)
}
