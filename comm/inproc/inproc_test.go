package inproc_test

import (
	"fmt"
	"testing"

	"github.com/sluice-engine/sluice/comm"
	"github.com/sluice-engine/sluice/comm/commtest"
	"github.com/sluice-engine/sluice/comm/inproc"
	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestConformance(t *testing.T) { commtest.Run(t, inproc.New) }

// TestConformanceWire runs the suite over in-process ranks that behave like a
// network: payloads are copied in segments, and events come late and out of
// order.
func TestConformanceWire(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			commtest.Run(t, func(n int) []comm.Transport { return commtest.Wire(inproc.New(n), seed) })
		})
	}
}
