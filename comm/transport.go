package comm

import (
	"time"

	"github.com/sluice-engine/sluice/buffer"
)

// Rank numbers the processes of a job from 0 to Size-1. It is always the
// launcher's number.
type Rank int32

// Info describes one rank's end of a transport. It does not change.
type Info struct {
	Rank Rank
	Size int
	// Name of the driver, for reports: "inproc", "ucx", "mpi".
	Name string
	// Host this rank runs on, for error texts.
	Host string
	// Epoch tells this job from any other that could reach the same addresses.
	Epoch uint32
	// HandsOver says that Pull moves the sender's Buffer itself into the
	// receiver's account instead of copying its bytes.
	HandsOver bool
	// MaxHead is the largest Send.Head in bytes.
	MaxHead int
}

// Region is a run of bytes inside a Buffer. The zero Region is empty.
type Region struct {
	Buf *buffer.Buffer
	Off int64
	Len int64
}

// Send is one frame to post, with an optional payload that the receiver
// fetches when it is ready.
type Send struct {
	To Rank
	// Cookie comes back in the EventSent that ends this send.
	Cookie uint64
	// Head is copied before Post returns.
	Head []byte
	// Body stays the sender's and must not change until EventSent. When the
	// transport hands over, it must span the whole Buffer, which belongs to the
	// receiver after an EventSent without error.
	Body Region
}

// Pull asks for an announced payload. Exactly one of Dst and Into is set; with
// neither the payload is dropped and its sender's EventSent carries ErrDropped.
type Pull struct {
	Token uint64
	// Dst is where a copying transport writes; Len is the announced size.
	Dst Region
	// Into is the granted memory of a transport that hands over.
	Into *buffer.Reservation
}

// EventKind says what an Event reports.
type EventKind uint8

const (
	// EventArrived: a frame from Peer. With a payload Size is above zero and
	// Token names it.
	EventArrived EventKind = iota + 1
	// EventPulled: the Pull of Token has ended. Data is the Buffer when the
	// transport hands over.
	EventPulled
	// EventSent: the Send with Cookie has ended and its memory is free again.
	// Success does not mean that the peer has used the payload.
	EventSent
	// EventDown: Peer is gone and no frame of it will arrive any more. Sends to
	// it and pulls from it have their own events.
	EventDown
)

// Event is one thing that happened on a transport.
type Event struct {
	Kind   EventKind
	Peer   Rank
	Cookie uint64
	Token  uint64
	Size   int64
	// Head is valid until the next Poll.
	Head []byte
	Data *buffer.Buffer
	Err  error
}

// A Transport is a driver. Calls are serialised by the Communicator but may
// come from any thread; only Wake may be called at any time. Frames from one
// rank to another arrive in any order.
type Transport interface {
	Info() Info
	// Post accepts a prefix of s and returns its length. It does not block.
	Post(s []Send) (int, error)
	// Pull starts one fetch and does not block.
	Pull(p Pull) error
	// Poll fills ev with what has happened and returns how much. If nothing
	// has, it waits at most max or until Wake; 0 does not wait.
	Poll(ev []Event, max time.Duration) (int, error)
	// Wake ends the running Poll, or the next one if none is running.
	Wake()
	// Close frees everything. Peers see EventDown.
	Close() error
}
