// Package buffer accounts for memory and hands it from owner to owner.
//
// A Resource is the accountant of one rank: it bounds each memory type by a
// limit and grants Reservations, without which nothing is allocated. A Buffer
// is a block of bytes off the Go heap with one owner, charged to one Resource.
// The bytes themselves come from an Arena, which the Resources of the ranks of
// one process share, so that a Buffer can be handed from rank to rank by moving
// its charge (Reservation.Adopt) and not its bytes. What is counted is the
// capacity of blocks, BlockSize, not the bytes asked for.
//
// Three rules hold at all times:
//
//   - Used plus reserved bytes of a type stay within its limit, except by what
//     an explicit Overbook or a lowered limit puts above it.
//   - The pages an Arena has touched and not given back stay within the sum of
//     its Resources' Host limits, except for what live blocks that share pages
//     leave unused between them.
//   - The locks of this package are leaves: no callback is run under one, and
//     two are never held together.
//
// The package never looks inside payloads and never spills by itself: limits of
// Device, Pinned and Disk are accepted only as zero so far.
package buffer
