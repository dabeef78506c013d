package tables

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The metadata of a chunk, little endian:
//
//	0   uint16  magic "ST"
//	2   uint8   version, 1
//	3   uint8   flags: 1 = the schema follows the header
//	4   uint32  rows
//	8   uint64  fingerprint of the schema: XXH3 of its encoding (schema.go)
//	16  [uvarint length, encoded schema]
//	    numbers of each node, depth first, as uvarints:
//	      nulls                  if the kind has a validity bitmap
//	      extent                 if the kind has one: see node.lengths
//	      rows of each child     if the node is a dense union
//
// Everything else about the body follows from these: buffers lie in the order
// of the nodes, each padded with zeros to 64 bytes; a validity bitmap is there
// if there are nulls.
const (
	metaMagic   = 'S' | 'T'<<8
	metaVersion = 1
	metaHeader  = 16 // bytes

	flagSchema = 1
)

// errShort says that the metadata ends early.
var errShort = errors.New("metadata ends early")

type header struct {
	flags       uint8
	rows        int
	fingerprint uint64
}

func (h header) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, metaMagic)
	b = append(b, metaVersion, h.flags)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.rows))
	return binary.LittleEndian.AppendUint64(b, h.fingerprint)
}

// parseHeader gives the header and what follows it.
func parseHeader(b []byte) (h header, rest []byte, err error) {
	if len(b) < metaHeader {
		return h, nil, errShort
	}
	if m := binary.LittleEndian.Uint16(b); m != metaMagic {
		return h, nil, fmt.Errorf("magic %#x, not a table chunk", m)
	}
	if b[2] != metaVersion {
		return h, nil, fmt.Errorf("version %d, this build reads %d", b[2], metaVersion)
	}
	if h.flags = b[3]; h.flags&^flagSchema != 0 {
		return h, nil, fmt.Errorf("unknown flags %#x", h.flags)
	}
	rows := binary.LittleEndian.Uint32(b[4:])
	if rows > maxRows {
		return h, nil, fmt.Errorf("%d rows, at most %d are allowed", rows, maxRows)
	}
	h.rows = int(rows)
	h.fingerprint = binary.LittleEndian.Uint64(b[8:])
	return h, b[metaHeader:], nil
}

// appendNumbers appends the numbers of each node.
func (p *plan) appendNumbers(b []byte) []byte {
	for _, n := range p.tree.nodes {
		pc := &p.pieces[n.id]
		if n.kind.hasValidity() {
			b = binary.AppendUvarint(b, uint64(pc.nulls))
		}
		if n.kind.hasExtent() {
			b = binary.AppendUvarint(b, uint64(pc.extent))
		}
		if n.kind == kDense {
			for _, kid := range n.kids {
				b = binary.AppendUvarint(b, uint64(p.pieces[kid.id].rows))
			}
		}
	}
	return b
}

// numbers reads what appendNumbers wrote.
type numbers struct {
	rest   []byte
	places []place // by node id
	body   int64   // bytes placed so far
	limit  int64   // bytes of the body
}

// parseNumbers gives the places of all nodes, for a body of the given size:
// neither the metadata nor the body may be longer than they say.
func (t *tree) parseNumbers(b []byte, rows int, body int64) ([]place, error) {
	if tooLight(rows, body) {
		return nil, fmt.Errorf("%d rows in %d bytes", rows, body)
	}
	r := &numbers{rest: b, places: make([]place, len(t.nodes)), limit: body}
	for _, n := range t.cols {
		if err := r.node(n, rows); err != nil {
			return nil, err
		}
	}
	if len(r.rest) > 0 {
		return nil, fmt.Errorf("%d bytes after the metadata", len(r.rest))
	}
	if r.body != body {
		return nil, fmt.Errorf("body of %d bytes where %d were declared", body, r.body)
	}
	return r.places, nil
}

// next reads one number and verifies its bound.
func (r *numbers) next(limit int64) (int64, error) {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		return 0, errShort
	}
	if v > uint64(limit) {
		return 0, fmt.Errorf("%d where at most %d is possible", v, limit)
	}
	r.rest = r.rest[n:]
	return int64(v), nil
}

func (r *numbers) node(n *node, rows int) error {
	pl := &r.places[n.id]
	if pl.rows = rows; tooLight(rows, r.limit) {
		return n.fault("%d values in %d bytes", rows, r.limit)
	}
	if n.kind.hasValidity() {
		nulls, err := r.next(int64(rows))
		if err != nil {
			return n.fault("nulls: %v", err)
		}
		pl.nulls = int(nulls)
	}
	if n.kind.hasExtent() {
		var err error
		if pl.extent, err = r.next(r.extentLimit(n)); err != nil {
			return n.fault("extent: %v", err)
		}
	}
	pl.lens = n.lengths(rows, pl.nulls, pl.extent)
	for _, l := range pl.lens {
		if l > r.limit-r.body {
			return n.fault("buffer of %d bytes beyond the body of %d", l, r.limit)
		}
		r.body += aligned(l)
		if r.body > r.limit {
			return n.fault("the padding is missing")
		}
	}
	pl.settle(r.body - aligned(pl.lens[0]) - aligned(pl.lens[1]) - aligned(pl.lens[2]))
	if n.kind == kDense {
		return r.dense(n)
	}
	if len(n.kids) == 0 {
		return nil
	}
	kidRows := n.kidRows(rows, pl.extent)
	if kidRows > maxRows {
		return n.fault("%d values, at most %d are allowed", kidRows, maxRows)
	}
	for _, kid := range n.kids {
		if err := r.node(kid, int(kidRows)); err != nil {
			return err
		}
	}
	return nil
}

// dense reads the rows of all children, which stand before their numbers.
func (r *numbers) dense(n *node) error {
	rows := make([]int, len(n.kids))
	for i := range rows {
		v, err := r.next(maxRows)
		if err != nil {
			return n.fault("rows of child %d: %v", i, err)
		}
		rows[i] = int(v)
	}
	for i, kid := range n.kids {
		if err := r.node(kid, rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *numbers) extentLimit(n *node) int64 {
	switch n.kind {
	case kVar32, kView:
		return min(r.limit, math.MaxInt32)
	case kVar64:
		return r.limit
	default:
		return maxRows
	}
}
