package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// HeaderSize is the length in bytes of the header that starts every frame.
const HeaderSize = 64

const (
	wireMagic   = 0x4c53 // "SL" in memory order
	wireVersion = 1
)

// MaxMeta bounds the metadata of one message in bytes. It is checked before
// memory is taken for it.
const MaxMeta = 16 << 20

// kind says what a frame is. Kinds from kindData on belong to an operation and
// are counted by the quiet check; the ones below keep the job together, are
// bounded by construction and travel outside any credit.
type kind uint8

const (
	kindHello kind = iota + 1
	kindOpen
	kindAbort
	kindAbortJob
	kindAbortAck
	kindCredit
	kindBarrier
	kindBye
	kindProbe
	kindProbeReply
	kindStarved
)

const (
	kindData    kind = iota + 16 // one segment of a message, or a message without payload
	kindBatch                    // small messages gathered into one payload
	kindControl                  // a message to the collective itself, metadata only
	kindMeta                     // a part of metadata that does not fit into one frame
)

func (k kind) valid() bool {
	return k >= kindHello && k <= kindStarved || k >= kindData && k <= kindMeta
}

// counted reports whether frames of this kind carry the work of an operation.
func (k kind) counted() bool { return k >= kindData }

// header is the fixed part of a frame; docs/wire.md has the byte layout.
type header struct {
	kind   kind
	epoch  uint32
	gen    uint32 // generation of op: how often it was opened before
	op     OpID
	seq    uint64 // number of the message in (op, generation, source, destination)
	part   uint32 // partition or tag; in a batch the number of messages
	meta   uint32 // length of the message's metadata
	data   uint64 // length of the message's payload; in kindMeta the offset of this part
	seg    uint32 // which segment of the payload
	inline uint32 // bytes that follow the header in this frame
	credit uint32 // bytes of eager credit given back to the receiver
}

// crcTable: CRC-32C, as in RFC 3720 appendix B.4.
var crcTable = crc32.MakeTable(crc32.Castagnoli)

// errFrame is the class of all malformed frames.
var errFrame = errors.New("malformed frame")

func (h *header) encode(b []byte) {
	_ = b[HeaderSize-1]
	le := binary.LittleEndian
	le.PutUint16(b[0:], wireMagic)
	b[2] = wireVersion
	b[3] = byte(h.kind)
	le.PutUint32(b[4:], 0)
	le.PutUint32(b[8:], h.epoch)
	le.PutUint32(b[12:], h.gen)
	le.PutUint64(b[16:], uint64(h.op))
	le.PutUint64(b[24:], h.seq)
	le.PutUint32(b[32:], h.part)
	le.PutUint32(b[36:], h.meta)
	le.PutUint64(b[40:], h.data)
	le.PutUint32(b[48:], h.seg)
	le.PutUint32(b[52:], h.inline)
	le.PutUint32(b[56:], h.credit)
	le.PutUint32(b[60:], 0)
	le.PutUint32(b[4:], crc32.Checksum(b[:HeaderSize], crcTable))
}

// frame returns a frame of h and the bytes that follow it.
func (h *header) frame(body []byte) []byte {
	f := make([]byte, HeaderSize+len(body))
	h.inline = uint32(len(body))
	h.encode(f)
	copy(f[HeaderSize:], body)
	return f
}

// decode checks everything that can be checked without knowing the job: the
// checksum, the kind, and that the lengths agree with each other and stay
// below their caps.
func (h *header) decode(f []byte) error {
	if len(f) < HeaderSize {
		return fmt.Errorf("%w: %d bytes, shorter than a header", errFrame, len(f))
	}
	le := binary.LittleEndian
	if m := le.Uint16(f[0:]); m != wireMagic {
		return fmt.Errorf("%w: magic %#04x", errFrame, m)
	}
	if f[2] != wireVersion {
		return fmt.Errorf("%w: wire version %d, this build speaks %d", errFrame, f[2], wireVersion)
	}
	var zeroed [HeaderSize]byte
	copy(zeroed[:], f)
	le.PutUint32(zeroed[4:], 0)
	if got, want := crc32.Checksum(zeroed[:], crcTable), le.Uint32(f[4:]); got != want {
		return fmt.Errorf("%w: header checksum %08x, computed %08x", errFrame, want, got)
	}
	*h = header{
		kind:   kind(f[3]),
		epoch:  le.Uint32(f[8:]),
		gen:    le.Uint32(f[12:]),
		op:     OpID(le.Uint64(f[16:])),
		seq:    le.Uint64(f[24:]),
		part:   le.Uint32(f[32:]),
		meta:   le.Uint32(f[36:]),
		data:   le.Uint64(f[40:]),
		seg:    le.Uint32(f[48:]),
		inline: le.Uint32(f[52:]),
		credit: le.Uint32(f[56:]),
	}
	switch {
	case !h.kind.valid():
		return fmt.Errorf("%w: kind %d", errFrame, h.kind)
	case le.Uint32(f[60:]) != 0:
		return fmt.Errorf("%w: reserved field is set", errFrame)
	case uint64(h.inline) != uint64(len(f)-HeaderSize):
		return fmt.Errorf("%w: %d bytes follow the header, it says %d", errFrame, len(f)-HeaderSize, h.inline)
	case h.meta > MaxMeta:
		return fmt.Errorf("%w: metadata of %d bytes, at most %d", errFrame, h.meta, MaxMeta)
	case h.data > math.MaxInt64:
		return fmt.Errorf("%w: payload of %d bytes", errFrame, h.data)
	case h.seq > math.MaxInt64:
		return fmt.Errorf("%w: sequence %d", errFrame, h.seq)
	}
	return nil
}
