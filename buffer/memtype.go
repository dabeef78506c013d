package buffer

import "strconv"

// MemType is where bytes live, best place first.
type MemType uint8

// The memory types in the order of preference.
const (
	Device MemType = iota
	Pinned
	Host
	Disk
	NumMemTypes = iota
)

// String returns the name in lower case.
func (t MemType) String() string {
	switch t {
	case Device:
		return "device"
	case Pinned:
		return "pinned"
	case Host:
		return "host"
	case Disk:
		return "disk"
	}
	return "memtype(" + strconv.Itoa(int(t)) + ")"
}

// Holder says who holds accounted bytes. It matters only for what is reported:
// NoMemoryError.Holders and Usage.Held.
type Holder uint8

// The holders of accounted bytes.
const (
	HeldByCaller Holder = iota // reserved or allocated by the embedder
	HeldOutgoing               // accepted for sending
	HeldReceived               // arrived, or being fetched, and not handed out
	HeldStaging                // working memory of the engine
	NumHolders   = iota
)

// String returns the name in lower case.
func (h Holder) String() string {
	switch h {
	case HeldByCaller:
		return "caller"
	case HeldOutgoing:
		return "outgoing"
	case HeldReceived:
		return "received"
	case HeldStaging:
		return "staging"
	}
	return "holder(" + strconv.Itoa(int(h)) + ")"
}
