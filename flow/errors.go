package flow

import (
	"errors"
	"fmt"
)

var (
	// ErrUnreadable marks input that could not be reached: missing, no
	// permission, not a file, an I/O error.
	ErrUnreadable = errors.New("unreadable")
	// ErrDamaged marks input that was read but is not what its format promises.
	ErrDamaged = errors.New("damaged")
	// ErrNoColumn marks a column name that the table does not have.
	ErrNoColumn = errors.New("no such column")
	// ErrType marks a column type that the operation does not accept.
	ErrType = errors.New("unsupported type")
	// ErrOverflow marks an exact sum that its type cannot hold.
	ErrOverflow = errors.New("overflow")
	// ErrNotEmpty marks an output directory that already holds something.
	ErrNotEmpty = errors.New("directory is not empty")
)

// inputError is a fault of one input file: what was being done, which of
// ErrUnreadable and ErrDamaged it is, and the cause.
type inputError struct {
	act, path   string
	kind, cause error
}

func (e *inputError) Error() string {
	if e.kind == ErrDamaged {
		return fmt.Sprintf("flow: %s %s: damaged: %v", e.act, e.path, e.cause)
	}
	return fmt.Sprintf("flow: %s %s: %v", e.act, e.path, e.cause)
}

func (e *inputError) Unwrap() []error { return []error{e.kind, e.cause} }

// guard turns a panic of a format library into an error. The libraries index
// into bytes from outside without checking all of them.
func guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("format library: %v", r)
		}
	}()
	return fn()
}
