package comm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that callers branch on.
var (
	// ErrClosed: the Communicator was closed on this rank.
	ErrClosed = errors.New("comm: closed")
	// ErrInUse: something is still open that has to be closed first.
	ErrInUse = errors.New("comm: still in use")
	// ErrOpInUse: the operation id is live on this rank.
	ErrOpInUse = errors.New("comm: operation id in use")
	// ErrDropped ends a send whose payload the receiver refused.
	ErrDropped = errors.New("comm: payload dropped by the receiver")
	// errLeft: the peer has closed its Communicator while others need it.
	errLeft = errors.New("left the job before this was done")
	// ErrPeerClosed: the peer left without saying goodbye.
	ErrPeerClosed = errors.New("connection closed without goodbye")
)

// PeerError says that a rank was lost, gave up, or broke the protocol. Cause is
// rebuilt on every rank, so that errors.As finds a *buffer.NoMemoryError,
// *MismatchError or *buffer.CorruptError wherever it happened.
type PeerError struct {
	Rank  Rank          // the rank at fault; -1: unknown
	Host  string        // where it runs; empty: unknown
	Op    OpID          // the operation concerned; NoOp: the whole job
	Since time.Duration // of silence before the loss; 0: the death was reported
	Cause error
}

func (e *PeerError) Error() string {
	var b strings.Builder
	b.WriteString("comm: ")
	if e.Op != NoOp {
		fmt.Fprintf(&b, "op %v: ", e.Op)
	}
	fmt.Fprintf(&b, "rank %d", e.Rank)
	if e.Host != "" {
		fmt.Fprintf(&b, " (%s)", e.Host)
	}
	if e.Since > 0 {
		fmt.Fprintf(&b, " silent for %v", e.Since)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

func (e *PeerError) Unwrap() error { return e.Cause }

// MismatchError says that two ranks joined one thing with different
// parameters. Diff names each difference as "key: value here, value there".
type MismatchError struct {
	What string // "job" or the kind of collective
	Peer Rank
	Diff []string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("comm: %s differs from rank %d's: %s", e.What, e.Peer, strings.Join(e.Diff, "; "))
}
