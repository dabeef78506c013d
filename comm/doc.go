// Package comm connects the ranks of a job. It moves framed messages between
// ports; collectives are built on ports, not on tags.
//
// # Nouns
//
// A [Transport] is a small driver: it posts frames, announces the payloads that
// came with arriving frames, and fetches an announced payload when told where
// to put it. A [Communicator] owns one Transport and one rank's memory. A
// [Port] is this rank's end of one operation; the collective behind it is a
// [Handler], which is asked for the next message when there is room on the
// wire and is given every message that has arrived whole.
//
// # Data
//
// A message is a partition (or tag), metadata and an optional payload. Its
// payload stays at the sender until the receiver has memory for all of it:
// the receiver learns the size from the announcement, asks its
// [buffer.Resource], and only then fetches. An announcement that finds no room
// is parked, and that is the back-pressure. Small messages are gathered into
// batches when they are sent, never earlier, so that they batch themselves
// under load and leave at once when the wire is idle.
//
// # Rules
//
// C1. Nothing but an open frame is sent to a peer for an operation before that
// peer's own open frame for the same operation and generation has arrived and
// its fingerprint was found equal. So a slow rank never sees traffic of a round
// it has not reached, and two ranks that disagree learn it before any data.
//
// C2. core is a state machine without goroutines, locks or clocks. It is
// touched only by the holder of the progress baton. Other goroutines reach it
// through a queue of closures.
//
// C3. Handlers run under the baton with no lock of this package held. They take
// their own lock, append to queues and return.
//
// C4. A payload that was posted is given back or freed only when the transport
// says that its send has ended; for an aborted operation also not before every
// peer has said that it dropped what it knew of it.
//
// C5. Memory that can never come free is found by counting, not by a clock:
// see quiet.go.
//
// The byte layout of frames is in docs/wire.md.
package comm
