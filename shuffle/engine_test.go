package shuffle

import (
	"encoding/hex"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/internal/script"
)

var _ = flag.Bool("update", false, "rewrite the transcripts")

// TestEngine tells what the engine does as stories: engines of several ranks
// that are told to do something, without goroutines and without a wire. What
// one takes for another is under way until `deliver`.
func TestEngine(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "engine", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			w := &world{t: t}
			script.Run(t, f, w.do)
			w.close()
		})
	}
}

// world is the engines of one shuffle.
type world struct {
	t       *testing.T
	mem     *buffer.Resource
	engines []*engine
	sent    [][]uint64 // messages by source and destination: the next sequence
	way     []letter
	out     strings.Builder
}

// letter is a message under way.
type letter struct {
	src, dst comm.Rank
	seq      uint64
	m        comm.Message
}

// do runs a command; after the name stands the rank.
func (w *world) do(cmd script.Cmd) string {
	w.out.Reset()
	if err := w.run(cmd); err != nil {
		fmt.Fprintf(&w.out, "error: %v\n", err)
	}
	return w.out.String()
}

func (w *world) run(cmd script.Cmd) error {
	number := func(key string, def int64) int {
		n, err := cmd.Int(key, def)
		if err != nil {
			w.t.Fatal(err)
		}
		return int(n)
	}
	switch cmd.Name {
	case "job":
		return w.start(cmd, number("ranks", 1), number("parts", 1))
	case "deliver":
		return w.deliver(number("n", int64(len(w.way))), cmd.Value)
	}
	var r int
	if _, err := fmt.Sscan(cmd.Args[0], &r); err != nil || r < 0 || r >= len(w.engines) {
		return fmt.Errorf("no rank %q", cmd.Args[0])
	}
	e, rank := w.engines[r], comm.Rank(r)
	switch cmd.Name {
	case "insert":
		for i := range number("n", 1) {
			w.insert(e, PartID(number("part", 0)), number("meta", 1)+i, number("data", 0))
		}
	case "finish":
		to, err := e.finishInsert()
		fmt.Fprintf(&w.out, "%d: finish messages to %v\n", r, to)
		w.ready(e)
		return err
	case "send":
		to := comm.Rank(number("to", 0))
		ms := e.next(to, number("n", 1000), nil)
		for _, m := range ms {
			l := letter{rank, to, w.sent[rank][to], m}
			w.sent[rank][to]++
			w.way = append(w.way, l)
			fmt.Fprintf(&w.out, "%d>%d #%d %s\n", l.src, l.dst, l.seq, describe(m))
		}
	case "forge": // a message that no engine has made
		m := comm.Message{Part: uint32(number("part", 0)), Meta: []byte("x")}
		if v, ok := cmd.Value("finish"); ok {
			meta, err := hex.DecodeString(v)
			if err != nil {
				return err
			}
			m = comm.Message{Control: true, Meta: meta}
		}
		w.way = append(w.way, letter{src: rank, dst: comm.Rank(number("to", 0)), seq: uint64(number("seq", 99)), m: m})
	case "take":
		w.take(e, PartID(number("part", 0)))
	case "show":
		s := e.stats
		fmt.Fprintf(&w.out, "%d: sent %d chunks of %d bytes %v, received %d of %d, kept %d of %d; queued %d bytes; done %v, waiting %v\n", r,
			s.ChunksSent, s.BytesSent, s.SentTo, s.ChunksReceived, s.BytesReceived, s.ChunksLocal, s.BytesLocal, e.queued, e.done(), e.waiting())
	default:
		return fmt.Errorf("unknown command %s", cmd.Name)
	}
	return nil
}

// start makes the engines; owners=0,0,1 overrides the placement.
func (w *world) start(cmd script.Cmd, ranks, parts int) error {
	w.close()
	owner := make([]comm.Rank, parts)
	for p := range owner {
		owner[p] = RoundRobin(PartID(p), parts, ranks)
	}
	if v, ok := cmd.Value("owners"); ok {
		for p, text := range strings.Split(v, ",") {
			if _, err := fmt.Sscan(text, &owner[p]); err != nil {
				return err
			}
		}
	}
	var order comm.Order
	if v, ok := cmd.Value("order"); ok {
		if err := order.UnmarshalText([]byte(v)); err != nil {
			return err
		}
	}
	mem, err := buffer.NewResource(nil, nil, buffer.Config{})
	if err != nil {
		return err
	}
	w.mem, w.engines, w.sent = mem, nil, make([][]uint64, ranks)
	for r := range ranks {
		w.sent[r] = make([]uint64, ranks)
		w.engines = append(w.engines, newEngine(comm.Rank(r), ranks, owner, order))
	}
	return nil
}

// close frees what the shuffle holds; nothing may be left then.
func (w *world) close() {
	if w.mem == nil {
		return
	}
	for _, e := range w.engines {
		e.release()
	}
	for _, l := range w.way {
		l.m.Data.Release()
	}
	w.way = nil
	if err := w.mem.Close(); err != nil {
		w.t.Error(err)
	}
	w.mem = nil
}

func (w *world) insert(e *engine, p PartID, meta, data int) {
	d := &buffer.PackedData{Meta: make([]byte, meta)}
	if data > 0 {
		res, ok := w.mem.TryReserve(int64(data))
		if !ok {
			w.t.Fatal("no memory")
		}
		defer res.Release()
		b, err := res.Alloc(int64(data), nil)
		if err != nil {
			w.t.Fatal(err)
		}
		d.Data = b
	}
	e.insert(p, d)
}

// deliver gives n messages to their engines, the oldest first, or with order=back
// the youngest; those that are refused are freed.
func (w *world) deliver(n int, value func(string) (string, bool)) error {
	now := slices.Clone(w.way[:min(n, len(w.way))])
	w.way = slices.Delete(w.way, 0, len(now))
	if v, _ := value("order"); v == "back" {
		slices.Reverse(now)
	}
	for _, l := range now {
		e := w.engines[l.dst]
		var err error
		if l.m.Control {
			err = e.gotFinish(l.src, l.m.Meta)
		} else if err = e.deliver(l.src, l.seq, l.m); err != nil {
			l.m.Data.Release()
		}
		if err != nil {
			fmt.Fprintf(&w.out, "%d: error: %v\n", l.dst, err)
		}
		w.ready(e)
	}
	return nil
}

// ready reports partitions that have become complete.
func (w *world) ready(e *engine) {
	for ; e.taken < len(e.ready); e.taken++ {
		fmt.Fprintf(&w.out, "%d: partition %d is complete\n", e.self, e.ready[e.taken])
	}
}

// take empties a complete partition.
func (w *world) take(e *engine, p PartID) {
	for it := range e.index[p].items.Drain() {
		d := it.data
		fmt.Fprintf(&w.out, "%d: partition %d: #%d of rank %d, %s\n", e.self, p, it.seq, it.src, sizes(d.Meta, d.Data))
		d.Release()
	}
}

func describe(m comm.Message) string {
	if m.Control {
		return fmt.Sprintf("finish %x", m.Meta)
	}
	return fmt.Sprintf("part %d: %s", m.Part, sizes(m.Meta, m.Data))
}

func sizes(meta []byte, data *buffer.Buffer) string {
	var n int64
	if data != nil {
		n = data.Len()
	}
	return fmt.Sprintf("%d+%d bytes", len(meta), n)
}
