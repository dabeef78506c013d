package cuda

import (
	"errors"
	"testing"

	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestUnavailable(t *testing.T) {
	if err := Available(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Available: %v", err)
	}
	d, err := Open(3)
	if d != nil || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Open: %v, %v", d, err)
	}
	const want = "cuda: open device 3: the driver binding is not part of this build: unsupported operation"
	if err.Error() != want {
		t.Errorf("Open: %q, want %q", err, want)
	}
}
