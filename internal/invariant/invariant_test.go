package invariant

import "testing"

func TestCheck(t *testing.T) {
	for _, ok := range []bool{true, false} {
		var got any
		func() {
			defer func() { got = recover() }()
			Check(ok, "%d bytes left", 3)
		}()
		var want any
		if Enabled && !ok {
			want = "invariant: 3 bytes left"
		}
		if got != want {
			t.Errorf("Check(%v): panic %v, want %v", ok, got, want)
		}
	}
}

func TestPassingCheckAllocatesNothing(t *testing.T) {
	n := 5000
	allocs := testing.AllocsPerRun(100, func() { Check(n == 5000, "n is 5000") })
	if allocs != 0 {
		t.Errorf("a passing check allocates %v times", allocs)
	}
}
