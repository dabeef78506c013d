package comm

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/internal/script"
)

// TestCore tells the protocol as stories: each file of testdata/core is what
// two or three ranks are told to do, with every frame they post and everything
// their collectives are given. Frames have numbers, and stay under way until
// `deliver`; 3p is the fetch of the payload of frame 3, 3s the end of its send.
func TestCore(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "core", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			in := &interpreter{t: t}
			script.Run(t, f, in.do)
		})
	}
}

// interpreter runs the commands of a transcript. The first one is `job`. After
// the name stand the ranks concerned, such as 0 or 0,2, where there are any.
type interpreter struct {
	t testing.TB
	w *world
}

func (in *interpreter) do(cmd script.Cmd) string {
	if cmd.Name == "job" {
		return in.job(cmd)
	}
	err := in.world(cmd)
	if errors.Is(err, errNotWorld) {
		var nodes []*node
		if nodes, err = in.nodes(cmd); err == nil {
			for _, n := range nodes {
				if err = in.rank(n, cmd); err != nil {
					break
				}
			}
		}
	}
	if err != nil {
		fmt.Fprintf(&in.w.out, "error: %v\n", err)
	}
	for _, n := range in.w.nodes {
		in.w.settle(n)
	}
	out := in.w.out.String()
	in.w.out.Reset()
	return out
}

// integer returns the number after key=; a wrong one ends the test.
func (in *interpreter) integer(cmd script.Cmd, key string, def int64) int64 {
	n, err := cmd.Int(key, def)
	if err != nil {
		in.t.Fatal(err)
	}
	return n
}

func text(cmd script.Cmd, key string) string {
	v, _ := cmd.Value(key)
	return v
}

func has(cmd script.Cmd, word string) bool { return slices.Contains(cmd.Args, word) }

// job makes the ranks: ranks=N limit=BYTES limitR=BYTES head=BYTES window=N
// wire=BYTES coalesce=BYTES batch=BYTES handover quietly.
func (in *interpreter) job(cmd script.Cmd) string {
	cfg := worldConfig{
		ranks:    int(in.integer(cmd, "ranks", 2)),
		maxHead:  int(in.integer(cmd, "head", 8<<10)),
		handOver: has(cmd, "handover"),
		comm: Config{
			Window:        int(in.integer(cmd, "window", 0)),
			WireBytes:     in.integer(cmd, "wire", 0),
			CoalesceBytes: int(in.integer(cmd, "coalesce", 0)),
			BatchBytes:    int(in.integer(cmd, "batch", 0)),
		},
	}
	for r := range cfg.ranks {
		cfg.limits = append(cfg.limits, in.integer(cmd, fmt.Sprint("limit", r), in.integer(cmd, "limit", 0)))
	}
	in.w = newWorld(in.t, cfg)
	if has(cmd, "quietly") { // the hellos are not the story
		in.w.deliver(slices.Clone(in.w.way))
		in.w.out.Reset()
	}
	out := in.w.out.String()
	in.w.out.Reset()
	return out
}

var errNotWorld = errors.New("unknown command")

// world runs a command on what is under way.
func (in *interpreter) world(cmd script.Cmd) error {
	w := in.w
	switch cmd.Name {
	case "deliver": // nothing: everything, until nothing is under way
		if len(cmd.Args) > 0 {
			fs, err := in.flights(cmd)
			w.deliver(fs)
			return err
		}
		for range 10_000 {
			if len(w.way) == 0 {
				return nil
			}
			w.deliver(slices.Clone(w.way))
		}
		return errors.New("the ranks do not come to rest")
	case "lose":
		fs, err := in.flights(cmd)
		w.way = slices.DeleteFunc(w.way, func(f *flight) bool { return slices.Contains(fs, f) })
		return err
	case "copy": // a transport delivers a frame twice
		for _, a := range cmd.Args {
			no, err := strconv.Atoi(a)
			if err != nil || no < 1 || no > len(w.sent) {
				return fmt.Errorf("no frame %s", a)
			}
			f := *w.sent[no-1]
			f.orphan = true
			w.launch(&f, fmt.Sprintf(" (copy of #%d)", no))
		}
		return nil
	case "break": // a fetch fails
		fs, err := in.flights(cmd)
		for _, f := range fs {
			f.act = func(n *node) { n.broken(f) }
		}
		return err
	case "forge":
		return in.forge(cmd)
	case "way":
		for _, f := range w.way {
			fmt.Fprintf(&w.out, "%s to %d\n", f.name, f.to)
		}
		return nil
	}
	return errNotWorld
}

// flights returns what is named: names, or to=R and kind=K.
func (in *interpreter) flights(cmd script.Cmd) ([]*flight, error) {
	var fs []*flight
	to, kd := in.integer(cmd, "to", -1), text(cmd, "kind")
	for _, f := range in.w.way {
		named := slices.Contains(cmd.Args, f.name)
		picked := (to >= 0 || kd != "") && (to < 0 || f.to == Rank(to)) && (kd == "" || kindNames[f.kind] == kd)
		if named || picked {
			fs = append(fs, f)
		}
	}
	if len(fs) == 0 {
		return nil, errors.New("nothing of that is under way")
	}
	return fs, nil
}

// forge sends a frame that no rank has made: from= to= kind= and the fields of
// a header by name, size= for an announced payload, body=, hex= or fill=N for
// what follows the header, bytes=HEX for what starts the payload, cut=N to send
// only N bytes, flip=N to damage byte N.
func (in *interpreter) forge(cmd script.Cmd) error {
	u := func(key string) uint64 {
		v, ok := cmd.Value(key)
		if !ok {
			return 0
		}
		n, err := strconv.ParseUint(v, 0, 64)
		if err != nil {
			in.t.Fatal(err)
		}
		return n
	}
	kd, ok := kindNamed(text(cmd, "kind"))
	if !ok {
		kd = kind(u("kind"))
	}
	h := header{
		kind: kd, epoch: 7, gen: uint32(u("gen")), op: OpID(u("op")), seq: u("seq"), part: uint32(u("part")),
		meta: uint32(u("meta")), data: u("data"), seg: uint32(u("seg")), credit: uint32(u("credit")),
	}
	if e, ok := cmd.Value("epoch"); ok {
		_, _ = fmt.Sscan(e, &h.epoch)
	}
	body := []byte(text(cmd, "body"))
	if v := text(cmd, "hex"); v != "" {
		var err error
		if body, err = hex.DecodeString(v); err != nil {
			return err
		}
	}
	body = append(body, make([]byte, u("fill"))...)
	head := h.frame(body)
	if n := in.integer(cmd, "flip", -1); n >= 0 {
		head[n] ^= 1
	}
	if n := in.integer(cmd, "cut", -1); n >= 0 {
		head = head[:n]
	}
	f := &frame{from: Rank(u("from")), to: Rank(u("to")), head: head, size: int64(u("size")), orphan: true}
	f.fake = make([]byte, min(f.size, 1<<20))
	bytes, err := hex.DecodeString(text(cmd, "bytes"))
	copy(f.fake, bytes)
	in.w.launch(f, " (forged)")
	return err
}

// nodes returns the ranks that a command names first.
func (in *interpreter) nodes(cmd script.Cmd) ([]*node, error) {
	var ns []*node
	if len(cmd.Args) == 0 {
		return nil, errNotWorld
	}
	for r := range strings.SplitSeq(cmd.Args[0], ",") {
		i, err := strconv.Atoi(r)
		if err != nil || i >= len(in.w.nodes) {
			return nil, fmt.Errorf("no rank %q", r)
		}
		ns = append(ns, in.w.nodes[i])
	}
	return ns, nil
}

// rank runs a command of one rank.
func (in *interpreter) rank(n *node, cmd script.Cmd) error {
	op := OpID(in.integer(cmd, "op", 1))
	switch cmd.Name {
	case "open":
		return in.open(n, op, cmd)
	case "barrier":
		n.barrier()
	case "abortjob":
		n.c.Abort(errors.New(cmd.String()))
	case "leave": // what Close does before it waits
		n.c.submit(func() { n.c.core.closing = true })
	case "down":
		peer := Rank(in.integer(cmd, "peer", -1))
		n.events = append(n.events, Event{Kind: EventDown, Peer: peer})
	case "idle":
		n.c.core.idle()
	case "hold":
		return n.hold(in.integer(cmd, "bytes", 0))
	case "want":
		n.want(in.integer(cmd, "bytes", 0))
	case "limit":
		return n.mem.SetLimit(buffer.Host, buffer.Bytes(in.integer(cmd, "bytes", 0)))
	case "free":
		n.free()
	case "show":
		n.show()
	default:
		return in.pipe(n, op, cmd)
	}
	return nil
}

// open opens op; words key=value but op= are parameters.
func (in *interpreter) open(n *node, op OpID, cmd script.Cmd) error {
	var params []Param
	for _, a := range cmd.Args {
		if key, v, ok := strings.Cut(a, "="); ok && key != "op" {
			params = append(params, Param{key, v})
		}
	}
	_, err := n.open(op, params)
	return err
}

// pipe runs a command of the latest use of an operation.
func (in *interpreter) pipe(n *node, op OpID, cmd script.Cmd) error {
	var p *pipe
	for _, q := range n.pipes {
		if q.port.op == op {
			p = q
		}
	}
	if p == nil {
		return errNotWorld
	}
	switch cmd.Name {
	case "push":
		for i := range in.integer(cmd, "n", 1) {
			err := p.push(Rank(in.integer(cmd, "to", 0)), uint32(in.integer(cmd, "part", 0)+i),
				int(in.integer(cmd, "meta", 1)), in.integer(cmd, "data", 0), has(cmd, "control"))
			if err != nil {
				return err
			}
		}
	case "complete":
		p.port.Complete()
	case "close":
		p.port.Close(errors.New("closed early"))
	case "abort":
		p.port.Abort(errors.New("gave up"))
	case "release":
		p.release()
	case "busy":
		p.busy = true
	case "stalled":
		p.busy = false
	default:
		return errNotWorld
	}
	return nil
}

// barrier enters the next barrier; settle says when it ends.
func (n *node) barrier() {
	b := &barrier{}
	n.barriers = append(n.barriers, b)
	n.c.submit(func() { n.c.core.barriers.enter(n.c.core, b) })
}

// hold takes memory as the rank's caller.
func (n *node) hold(size int64) error {
	res, ok := n.mem.TryReserve(size, buffer.Host)
	if !ok {
		return fmt.Errorf("no memory for %d bytes", size)
	}
	n.holds = append(n.holds, res)
	return nil
}

// free releases what is held; that may grant what is wanted.
func (n *node) free() {
	holds := n.holds
	n.holds = nil
	for _, h := range holds {
		h.Release()
	}
}

// want queues for memory and says what comes of it.
func (n *node) want(size int64) {
	n.mem.Request(size, []buffer.MemType{buffer.Host}, func(res *buffer.Reservation, err error) {
		if err != nil {
			n.say("refused: %v", err)
			return
		}
		n.say("granted %d bytes", size)
		n.holds = append(n.holds, res)
	})
}

// show writes the state that a reader of the story may ask for.
func (n *node) show() {
	k := n.c.core
	u := n.mem.Usage(buffer.Host)
	n.say("memory: caller %d, outgoing %d, received %d, staging %d; parked %d, dropped %d, copied %d, batched %d",
		u.Held[buffer.HeldByCaller], u.Held[buffer.HeldOutgoing], u.Held[buffer.HeldReceived], u.Held[buffer.HeldStaging],
		k.stats.parked, k.stats.dropped, k.stats.copied, k.stats.coalesced)
	n.say("operations: %d live, %d early; on the wire %d bytes", len(k.ports)-1, len(k.early), k.wireBytes)
	for pe := range k.others() {
		n.say("peer %d: posted %d, credit %d, owed %d, waiting for credit %d", pe.rank, pe.inflight, pe.credit, pe.owed, len(pe.eager))
	}
}
