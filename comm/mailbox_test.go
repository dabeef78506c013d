package comm

import (
	"errors"
	"testing"

	"github.com/sluice-engine/sluice/buffer"
)

// TestMailWithoutMemory: a batch of mail that waits for memory goes with the
// mailbox, and takes none that comes free afterwards.
func TestMailWithoutMemory(t *testing.T) {
	n := newWorld(t, worldConfig{ranks: 2, limits: []int64{1 << 20, 1 << 20}, maxHead: 8 << 10}).nodes[0]
	bytes := record(Record{Part: 1, Meta: []byte("m"), Data: []byte("d")})
	res, _ := n.mem.TryReserve(int64(len(bytes)))
	body, err := res.Alloc(int64(len(bytes)), nil)
	if err != nil {
		t.Fatal(err)
	}
	copy(hostBytes(body), bytes)
	b, err := newBatch(0, 1, body)
	if err != nil {
		t.Fatal(err)
	}
	for n.mem.Available(buffer.Host) > 0 {
		if err := n.hold(64); err != nil {
			t.Fatal(err)
		}
	}
	n.c.mail.port.h.Batch(1, b)
	if w := n.mem.Waiting(); w.Requests != 1 {
		t.Fatalf("%+v", w)
	}
	n.c.mail.fail(errors.New("gave up"))
	if w := n.mem.Waiting(); w.Requests != 0 {
		t.Errorf("%+v after the end", w)
	}
	// The end of the test finds the account empty.
}

// TestRequestAfterTheEnd: memory that is granted when nobody is there to take it
// is given back.
func TestRequestAfterTheEnd(t *testing.T) {
	n := newWorld(t, worldConfig{ranks: 1, limits: []int64{1 << 20}, maxHead: 8 << 10}).nodes[0]
	if err := n.hold(1 << 20); err != nil {
		t.Fatal(err)
	}
	n.c.request(n.mem, 64, []buffer.MemType{buffer.Host}, func(*buffer.Reservation, error) { t.Error("taken") })
	n.c.end()
	n.free()
	n.w.settle(n)
	if u := n.mem.Usage(buffer.Host); u.Used+u.Reserved != 0 {
		t.Errorf("%+v", u)
	}
}
