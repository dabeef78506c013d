// Package inproc connects ranks that live in one process. It is the default
// for embedders and the transport of most tests.
//
// Payloads are handed over, not copied: a pull moves the charge of the sender's
// Buffer to the receiver's account (see buffer.Reservation.Adopt) and passes
// the Buffer on. Only a Buffer that shares its block with others, or that
// takes more than was announced, is copied.
//
// Each rank has a queue that any other may append to; only its owner takes from
// it, in Poll. A payload that was announced belongs to the sender until the
// receiver pulls it, under the sender's lock, so that a sender that closes
// takes back what nobody has fetched.
package inproc
