package comm

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/sluice-engine/sluice/buffer"
)

// A batch is a run of records: a 16-byte record header, then the payload and
// the metadata, each padded to 8 bytes so that a payload stays aligned.
const recordHeader = 16

func pad8(n int) int { return (n + 7) &^ 7 }

// recordSize is what one message takes in a batch.
func recordSize(meta, data int) int { return recordHeader + pad8(data) + pad8(meta) }

// putRecord writes one record and returns the length it took. fill copies the
// payload into the place it is given.
func putRecord(b []byte, part uint32, meta []byte, data int, fill func(dst []byte)) int {
	le := binary.LittleEndian
	le.PutUint32(b[0:], part)
	le.PutUint32(b[4:], uint32(len(meta)))
	le.PutUint32(b[8:], uint32(data))
	le.PutUint32(b[12:], 0)
	at := recordHeader
	if data > 0 {
		fill(b[at : at+data])
	}
	clear(b[at+data : at+pad8(data)])
	at += pad8(data)
	copy(b[at:], meta)
	clear(b[at+len(meta) : at+pad8(len(meta))])
	return at + pad8(len(meta))
}

// Record is one small message inside a Batch. Its slices are valid until the
// Batch is released.
type Record struct {
	Part uint32
	Meta []byte
	Data []byte
}

// Batch is a run of small messages from one rank, numbered from First on. The
// Handler that is given one owns it and releases it.
type Batch struct {
	First uint64
	Count int
	body  *buffer.Buffer
	bytes []byte
}

// newBatch checks the whole batch once, so that Records cannot fail.
func newBatch(first uint64, count int, body *buffer.Buffer) (*Batch, error) {
	b := &Batch{First: first, Count: count, body: body, bytes: hostBytes(body)}
	n, err := checkRecords(b.bytes)
	if err != nil {
		return nil, err
	}
	if n != count {
		return nil, fmt.Errorf("%w: batch of %d messages, its header says %d", errFrame, n, count)
	}
	return b, nil
}

// checkRecords walks a batch and returns how many records it has.
func checkRecords(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		if len(p) < recordHeader {
			return 0, fmt.Errorf("%w: batch record %d is cut short", errFrame, n)
		}
		meta, data := binary.LittleEndian.Uint32(p[4:]), binary.LittleEndian.Uint32(p[8:])
		need := uint64(recordHeader) + (uint64(data)+7)&^7 + (uint64(meta)+7)&^7
		if need > uint64(len(p)) {
			return 0, fmt.Errorf("%w: batch record %d needs %d bytes, %d are left", errFrame, n, need, len(p))
		}
		if binary.LittleEndian.Uint32(p[12:]) != 0 {
			return 0, fmt.Errorf("%w: reserved field of batch record %d is set", errFrame, n)
		}
		p = p[need:]
		n++
	}
	return n, nil
}

// Len is the number of bytes that the batch holds in memory.
func (b *Batch) Len() int { return len(b.bytes) }

// Records yields the messages in order; the first has number First.
func (b *Batch) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		p := b.bytes
		for len(p) > 0 {
			part := binary.LittleEndian.Uint32(p)
			meta, data := int(binary.LittleEndian.Uint32(p[4:])), int(binary.LittleEndian.Uint32(p[8:]))
			at := recordHeader + pad8(data)
			if !yield(Record{part, p[at : at+meta : at+meta], p[recordHeader : recordHeader+data : recordHeader+data]}) {
				return
			}
			p = p[at+pad8(meta):]
		}
	}
}

// Release gives the memory back.
func (b *Batch) Release() {
	b.bytes = nil
	b.body.Release()
}
