package comm

import (
	"flag"
	"testing"

	"github.com/sluice-engine/sluice/internal/leak"
)

var _ = flag.Bool("update", false, "rewrite the transcripts")

func TestMain(m *testing.M) { leak.Main(m) }
