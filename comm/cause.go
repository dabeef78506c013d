package comm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-engine/sluice/buffer"
)

// A cause crosses ranks as JSON, so that the typed error that started an abort
// is found with errors.As on every rank.

// maxCause bounds an encoded cause; longer texts are cut.
const maxCause = 4096

// maxEscape is how much longer JSON can make a byte of text.
const maxEscape = 6

// wireCause is the union of the causes that are rebuilt. Text is always set
// and is all that is left of an error of an unknown type.
type wireCause struct {
	Text     string                `json:"text"`
	NoMemory *buffer.NoMemoryError `json:"no_memory,omitempty"`
	Mismatch *MismatchError        `json:"mismatch,omitempty"`
	Corrupt  *buffer.CorruptError  `json:"corrupt,omitempty"`
}

// remoteError is a cause rebuilt from another rank: its text, and the typed
// error behind it if there was one.
type remoteError struct {
	text  string
	typed error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.typed }

func encodeCause(err error) []byte {
	w := wireCause{Text: cut(strings.ToValidUTF8(err.Error(), "\ufffd"), maxCause/4)}
	errors.As(err, &w.NoMemory)
	errors.As(err, &w.Mismatch)
	errors.As(err, &w.Corrupt)
	b, e := json.Marshal(w)
	if e != nil || len(b) > maxCause {
		b, _ = json.Marshal(wireCause{Text: cut(w.Text, maxCause/maxEscape-len(`{"text":""}`))}) // cannot fail
	}
	return b
}

// cut returns at most n bytes of s, without a part of a character at the end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

func decodeCause(p []byte) (error, error) {
	if len(p) > maxCause {
		return nil, fmt.Errorf("%w: cause of %d bytes", errFrame, len(p))
	}
	var w wireCause
	if err := json.Unmarshal(p, &w); err != nil {
		return nil, fmt.Errorf("%w: cause: %v", errFrame, err)
	}
	e := &remoteError{text: w.Text}
	switch {
	case w.NoMemory != nil:
		e.typed = w.NoMemory
	case w.Mismatch != nil:
		e.typed = w.Mismatch
	case w.Corrupt != nil:
		e.typed = w.Corrupt
	}
	return e, nil
}
