// Package tables stands between Arrow tables and the opaque chunks that
// sluice moves. It hashes rows by value, splits record batches into
// partitions, packs the rows of a partition into one chunk
// ([buffer.PackedData]: a small description and one body buffer) and makes
// record batches of chunks again, without a copy. It is the only package of
// sluice that looks inside data; it knows nothing of ranks or collectives.
//
// # Hash
//
// Which partition a row belongs to is part of the contract between ranks, and
// between versions: docs/hash.md holds it, testdata/hash_seed0.golden pins it.
// In short: the hash of a value is the 64 bit XXH3, with the caller's seed,
// of canonical bytes that depend on the value and not on how Arrow stores it.
// Integers of all widths and decimals of all scales hash alike when they are
// equal, timestamps when they are the same instant, strings whatever their
// offsets, encoding or dictionary; all NaN are one value, and so are the two
// zeros. Null has a hash of its own. Several key columns are chained in the
// order the keys are named in.
//
// # Ownership
//
// Chunks are given away to whoever receives them from an iterator or from
// Pack, as the buffer package defines it. Unpack takes a chunk over: the
// record batch refers to the chunk's memory, and releases it with the last
// reference to the batch, to one of its columns or to a slice of them.
// Batches passed in are only borrowed for the call.
//
// Nothing here trusts its input. Batches and chunks are verified, every
// length, offset and index, before their values are read; what is wrong with
// them is an error.
package tables
