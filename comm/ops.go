package comm

import (
	"fmt"
	"math"

	"github.com/zeebo/xxh3"
)

// OpID names one operation, the same on all ranks. Ids below MaxFixedOp are
// chosen by the caller; the others come from a Scope.
type OpID uint64

// MaxFixedOp bounds the ids that callers choose: 20 bits.
const MaxFixedOp OpID = 1 << 20

// NoOp stands for the whole job where an operation could stand.
const NoOp OpID = math.MaxUint64

// scopedBit keeps the ids of scopes apart from fixed ones.
const scopedBit OpID = 1 << 63

// mailOp is the built-in operation behind the Mailbox.
const mailOp OpID = MaxFixedOp

func (o OpID) String() string {
	if o&scopedBit != 0 {
		return fmt.Sprintf("%#x", uint64(o))
	}
	return fmt.Sprintf("%d", uint64(o))
}

// A Scope hands out operation ids, so that independent users of one
// Communicator cannot meet. Ranks that open scopes of one name and call NextOp
// in the same order get the same ids. It is for one goroutine.
type Scope struct {
	c    *Communicator
	name string
	next uint64
}

// Scope opens the scope called name. Two live scopes of one name on a rank are
// an error, because their ids would meet.
func (c *Communicator) Scope(name string) (*Scope, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st, live := c.scopes[name]
	if live && st.open {
		return nil, fmt.Errorf("comm: scope %q: %w", name, ErrInUse)
	}
	c.scopes[name] = scopeState{open: true, next: st.next}
	return &Scope{c: c, name: name, next: st.next}, nil
}

// scopeState outlives a Scope, so that the next one of the same name goes on
// counting and a slow rank cannot mix the two.
type scopeState struct {
	open bool
	next uint64
}

// NextOp returns a fresh id: a 64-bit hash of the name and a counter.
func (s *Scope) NextOp() OpID {
	id := OpID(xxh3.HashStringSeed(s.name, s.next)) | scopedBit
	s.next++
	return id
}

// Close frees the name.
func (s *Scope) Close() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.scopes[s.name] = scopeState{next: s.next}
}
