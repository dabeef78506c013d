package tables

import (
	"testing"

	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
