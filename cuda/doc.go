// Package cuda names the few CUDA notions that memory accounting needs:
// devices, addresses, streams and events. The driver binding is not part of
// this build: no Device can be opened, so every Stream is the nil Stream, which
// stands for the host, where work is complete as soon as it returns.
package cuda

import (
	"errors"
	"fmt"
)

// Ptr is a device address; an integer, so that Go never follows it.
type Ptr uintptr

// Device is one GPU with its primary context.
type Device struct{}

// Stream is ordered device work. The nil Stream is the host, always complete.
type Stream struct{}

// Event is a point in a Stream. A nil Event is ready.
type Event struct{}

// Available returns nil where the CUDA driver can be used, else the reason why
// not, which matches errors.ErrUnsupported.
func Available() error {
	return fmt.Errorf("cuda: the driver binding is not part of this build: %w", errors.ErrUnsupported)
}

// Open returns the device with the given 0-based ordinal.
func Open(ordinal int) (*Device, error) {
	return nil, fmt.Errorf("cuda: open device %d: the driver binding is not part of this build: %w", ordinal, errors.ErrUnsupported)
}
