//go:build faults

package faults

import "testing"

func TestOneChunkIsDamaged(t *testing.T) {
	for kind, want := range map[string]struct {
		times int
		part  uint32
		byte1 byte
	}{"flip": {1, 6, 0x12}, "drop": {0, 6, 2}, "duplicate": {2, 6, 2}, "misroute": {1, 7, 2}} {
		t.Setenv(Variable, kind)
		in, err := FromEnv()
		if err != nil {
			t.Fatal(err)
		}
		act := in.Next()
		b := []byte{1, 2, 3}
		act.Corrupt(b)
		if act.Times() != want.times || act.Part(6) != want.part || b[1] != want.byte1 {
			t.Errorf("%s: %d times, partition %d, bytes %v", kind, act.Times(), act.Part(6), b)
		}
		if act := in.Next(); act.Times() != 1 || act.Part(6) != 6 {
			t.Errorf("%s: a second chunk is damaged", kind)
		}
	}
	t.Setenv(Variable, "nonsense")
	if _, err := FromEnv(); err == nil {
		t.Error("nonsense is accepted")
	}
}
