package comm

// settle publishes what other goroutines may see of the core, and runs the
// closing protocol: when all operations have left and all sends have ended,
// say goodbye; when everybody has said it, nobody will send any more.
func (k *core) settle(c *Communicator) {
	if k.published != k.hellos {
		for pe := range k.others() {
			if pe.hello != nil {
				c.capacity[pe.rank].Store(pe.hello.capacity)
			}
		}
		c.capacity[k.info.Rank].Store(k.mem.Largest())
		k.published = k.hellos
	}
	if !k.closing {
		return
	}
	if k.err != nil {
		k.settleAbort(c)
		return
	}
	if !k.saidBye && k.drained() {
		k.saidBye = true
		for pe := range k.others() {
			k.urgent(pe, header{kind: kindBye, seq: pe.sent}, nil)
		}
	}
	if k.saidBye && !c.baton.left.Load() {
		for pe := range k.others() {
			if !pe.left || len(pe.urgent) > 0 {
				return
			}
		}
		if len(k.out) == 0 {
			c.baton.left.Store(true)
			c.signal()
		}
	}
}

// settleAbort notes when every reachable rank has said that the job is over.
func (k *core) settleAbort(c *Communicator) {
	if c.baton.acked.Load() {
		return
	}
	for pe := range k.others() {
		if !pe.aborted && !pe.down || len(pe.urgent) > 0 && !pe.down {
			return
		}
	}
	if len(k.out) == 0 {
		c.baton.acked.Store(true)
		c.baton.left.Store(true)
		c.signal()
	}
}

// drained reports whether all operations but the mailbox have left, and all
// sends have ended.
func (k *core) drained() bool {
	if !k.agreed() || len(k.ports) > 1 || len(k.slots) > len(k.free)+1 {
		return false
	}
	for pe := range k.others() {
		if len(pe.eager) > 0 || len(pe.active) > 0 {
			return false
		}
	}
	return true
}

// busy reports whether the core has something to hand to the transport now.
func (k *core) busy() bool {
	if len(k.pulls) > 0 {
		return true
	}
	for _, pe := range k.peers {
		if pe.dirty {
			return true
		}
	}
	return false
}

// teardown frees what is left after the transport is closed.
func (k *core) teardown() {
	for _, p := range k.ports {
		k.retire(p)
	}
}

// retire frees everything of a port without asking anyone; the transport is
// closed, so nobody can reach its payloads.
func (k *core) retire(p *Port) {
	for key, a := range k.asm {
		if key.port == p {
			a.flying = 0
			k.kill(a)
		}
	}
	for _, f := range k.pulling {
		if f.asm.key.port == p {
			f.asm.flying = 0
			k.discard(f.asm)
		}
	}
	for r := range p.out {
		for _, m := range p.out[r].pending {
			m.release()
		}
		p.out[r].pending = nil
		if w := p.out[r].partly; w != nil {
			w.msg.release()
		}
	}
	for _, s := range k.slots {
		if s.port == p {
			s.msg.release()
		}
	}
	for _, b := range p.held {
		b.Release()
	}
	p.held = nil
}
