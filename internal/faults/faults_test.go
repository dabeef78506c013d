package faults

import (
	"testing"

	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// Without the tag, and with it but without a fault asked for, chunks stay as
// they are.
func TestNothingByDefault(t *testing.T) {
	in, err := FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []*Injector{in, nil} {
		act := in.Next()
		b := []byte{1, 2, 3}
		act.Corrupt(b)
		if act.Times() != 1 || act.Part(7) != 7 || b[1] != 2 {
			t.Error("a chunk is changed")
		}
	}
}
