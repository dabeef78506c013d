package comm

import (
	"fmt"
	"strings"
)

// Param is one parameter of a collective that must be equal on all ranks.
type Param struct{ Key, Value string }

// Fingerprint is what ranks compare before they exchange data: the kind of
// collective and its parameters, in a fixed order.
type Fingerprint struct {
	Kind   string
	Params []Param
}

// maxFingerprint bounds an encoded Fingerprint, so that an open frame always
// fits into one frame and a peer cannot make us keep more.
const maxFingerprint = 2048

// encode returns kind and parameters as lines. Keys and values hold no line
// breaks; they are ours.
func (f Fingerprint) encode() []byte {
	var b strings.Builder
	b.WriteString(f.Kind)
	for _, p := range f.Params {
		b.WriteByte('\n')
		b.WriteString(p.Key)
		b.WriteByte('=')
		b.WriteString(p.Value)
	}
	return []byte(b.String())
}

func decodeFingerprint(p []byte) (Fingerprint, error) {
	if len(p) > maxFingerprint {
		return Fingerprint{}, fmt.Errorf("%w: fingerprint of %d bytes", errFrame, len(p))
	}
	lines := strings.Split(string(p), "\n")
	f := Fingerprint{Kind: lines[0]}
	for _, l := range lines[1:] {
		k, v, ok := strings.Cut(l, "=")
		if !ok {
			return Fingerprint{}, fmt.Errorf("%w: fingerprint line %q", errFrame, l)
		}
		f.Params = append(f.Params, Param{k, v})
	}
	return f, nil
}

// diff lists what differs between f and a peer's g; nil when they are equal.
func (f Fingerprint) diff(g Fingerprint) []string {
	var d []string
	if f.Kind != g.Kind {
		d = append(d, fmt.Sprintf("kind: %s here, %s there", f.Kind, g.Kind))
	}
	there := make(map[string]string, len(g.Params))
	for _, p := range g.Params {
		there[p.Key] = p.Value
	}
	for _, p := range f.Params {
		v, ok := there[p.Key]
		delete(there, p.Key)
		switch {
		case !ok:
			d = append(d, fmt.Sprintf("%s: %s here, nothing there", p.Key, p.Value))
		case v != p.Value:
			d = append(d, fmt.Sprintf("%s: %s here, %s there", p.Key, p.Value, v))
		}
	}
	for _, p := range g.Params {
		if v, ok := there[p.Key]; ok {
			d = append(d, fmt.Sprintf("%s: nothing here, %s there", p.Key, v))
		}
	}
	return d
}
