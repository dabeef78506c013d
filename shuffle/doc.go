// Package shuffle redistributes chunks so that each partition ends on one rank.
//
// Every rank inserts chunks for any partition, then says that it has finished.
// A partition is complete on its owner once every rank has finished and every
// chunk that was counted for it has arrived; partitions become complete one by
// one, and can be extracted while others are still on their way.
//
// # Parts
//
// engine is the state of one rank's shuffle: what is to be sent (an Outbox),
// what has been counted, and an inbox for each local partition. It has no
// goroutines and no locks; ShufflerAsync guards it with one mutex and connects
// it to a comm.Port.
//
// # Cost
//
// For P ranks: each chunk of another rank crosses one link once, as one message
// or inside a batch with other small chunks; then one finish message from every
// rank to every owner, with (partition, count) pairs in varints, absent meaning
// none. A rank's own chunks go from Insert to Extract by reference.
//
// # Small chunks
//
// A batch that arrives is taken apart: the chunks of one partition are appended
// to slabs of 4 to 64 KiB, which are the unit of accounting. Extract yields
// views into them; a slab is freed with the last of its views.
//
// # Order
//
// The chunks of one partition that one rank inserted are extracted in the order
// of their insertion. There is no order between ranks. Chunks are numbered by
// their sender; the inbox keeps them in runs, one for each batch or large chunk,
// and sorts the runs only if they arrived out of order.
package shuffle
