package comm

import (
	"errors"
	"fmt"
	"strings"
)

var kindNames = map[kind]string{
	kindHello: "hello", kindOpen: "open", kindAbort: "abort", kindAbortJob: "abortjob", kindAbortAck: "ack",
	kindCredit: "credit", kindBarrier: "barrier", kindBye: "bye", kindProbe: "probe", kindProbeReply: "reply",
	kindStarved: "starved", kindData: "data", kindBatch: "batch", kindControl: "control", kindMeta: "meta",
}

func kindNamed(name string) (kind, bool) {
	for k, n := range kindNames {
		if n == name {
			return k, true
		}
	}
	return 0, false
}

// describe writes a frame for a transcript: its kind, the fields that are set,
// what its body says, and the size of the payload that it announces.
func describe(head []byte, size int64) string {
	var h header
	if err := h.decode(head); err != nil {
		return err.Error()
	}
	var s strings.Builder
	s.WriteString(kindNames[h.kind])
	field := func(name string, v uint64) {
		if v != 0 {
			fmt.Fprintf(&s, " %s=%d", name, v)
		}
	}
	if h.kind.counted() || h.kind == kindOpen || h.kind == kindAbort || h.kind == kindAbortAck {
		fmt.Fprintf(&s, " op=%v", h.op)
	}
	field("gen", uint64(h.gen))
	if h.kind.counted() || h.kind == kindBarrier || h.kind == kindProbe || h.kind == kindProbeReply {
		fmt.Fprintf(&s, " seq=%d", h.seq)
	}
	field("part", uint64(h.part))
	field("meta", uint64(h.meta))
	field("data", h.data)
	field("seg", uint64(h.seg))
	field("credit", uint64(h.credit))
	if h.epoch != 7 {
		field("epoch", uint64(h.epoch))
	}
	s.WriteString(describeBody(h.kind, head[HeaderSize:]))
	if size > 0 {
		fmt.Fprintf(&s, " + payload of %d", size)
	}
	return s.String()
}

func describeBody(k kind, body []byte) string {
	switch k {
	case kindHello:
		if h, err := decodeHello(body); err == nil {
			return fmt.Sprintf(" size=%d capacity=%d segment=%d head=%d credit=%d", h.size, h.capacity, h.segment, h.maxHead, h.credit)
		}
	case kindOpen:
		return fmt.Sprintf(" %q", body)
	case kindAbort, kindAbortJob:
		if cause, err := decodeCause(body); err == nil {
			return fmt.Sprintf(" %q%s", cause, typeOf(cause))
		}
	case kindProbeReply:
		if a, err := decodeAnswer(body); err == nil {
			return fmt.Sprintf(" quiet=%v sent=%d received=%d", a.quiet, a.sent, a.received)
		}
	}
	if len(body) == 0 {
		return ""
	}
	return fmt.Sprintf(" body=%d", len(body))
}

// typeOf names the typed error that is rebuilt with a cause.
func typeOf(cause error) string {
	if typed := errors.Unwrap(cause); typed != nil {
		return fmt.Sprintf(" (%T)", typed)
	}
	return ""
}
