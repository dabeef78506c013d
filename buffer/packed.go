package buffer

import "github.com/sluice-engine/sluice/internal/invariant"

// PackedData is the unit of exchange: small host metadata and a payload that is
// never interpreted. A payload without metadata is invalid.
type PackedData struct {
	Meta []byte  // beyond what a frame carries (about 4 KiB) it costs a second message
	Data *Buffer // nil: metadata only
}

// Size returns the bytes of metadata and payload together.
func (p *PackedData) Size() int64 {
	n := int64(len(p.Meta))
	if p.Data != nil {
		n += p.Data.Len()
	}
	return n
}

// Take is called by who receives p, like Buffer.Take.
func (p *PackedData) Take() *PackedData {
	if !invariant.Enabled {
		return p
	}
	taken := &PackedData{Meta: p.Meta, Data: p.Data.Take()}
	p.Meta = nil
	return taken
}

// Release gives the payload back and forgets both parts. It may be called again.
func (p *PackedData) Release() {
	if p == nil {
		return
	}
	p.Data.Release()
	p.Meta, p.Data = nil, nil
}
