// Package exported shows each kind of declaration that the list of exported
// names must hold, and each that it must not.
package exported

import "errors"

// Kind is a kind.
type Kind uint8

// The kinds.
const (
	First Kind = iota
	Second
	third
)

// Limit is a constant of no type here.
const Limit = 1 << 20

// ErrBad is a variable.
var ErrBad = errors.New("exported: bad")

var hidden = third

// Thing has a field of each sort.
type Thing struct {
	Name string `json:"name"`
	mine int
}

// New makes a Thing.
func New(name string) *Thing { return &Thing{Name: name, mine: int(hidden)} }

// Len is a method.
func (t *Thing) Len() int { return t.mine + helper() }

func (t *Thing) secret() {}

// Box is generic.
type Box[T any] struct{ V T }

// Get is a method of it.
func (b Box[T]) Get() T { return b.V }

// Doer is an interface.
type Doer interface {
	Do(n int) error
}

type inner struct{ A int }

// Visible is exported, its type is not.
func (inner) Visible() {}

func helper() int { return 0 }
