package machine

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sluice-engine/sluice/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestRead(t *testing.T) {
	f := Read([]Component{{Name: "inproc", Usable: true}, {Name: "ucx", Reason: "not built"}})
	if f.Go != runtime.Version() || f.CPUs < 1 || f.Memory < 1<<20 || f.Available > f.Memory || f.Kernel == "" || f.Nofile == 0 {
		t.Errorf("%+v", f)
	}
	if f.CUDA.Usable || f.CUDA.Reason == "" {
		t.Errorf("CUDA %+v", f.CUDA)
	}
	f.Memlock, f.Shm, f.Warnings = -1, 64<<20, []string{"shm is small"}
	var out strings.Builder
	if err := f.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"memlock unlimited ", "shm 64 MiB\n", "inproc     yes\n", "ucx        no: not built\n", "cuda       no: ", "WARN       shm is small\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestField(t *testing.T) {
	path := filepath.Join(t.TempDir(), "info")
	if err := os.WriteFile(path, []byte("model\t: x\nmodel name\t: Some CPU: 2 GHz\nmodel name : other\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := field(path, "model name"); got != "Some CPU: 2 GHz" {
		t.Errorf("%q", got)
	}
	if got := field(path, "absent") + field(path+"x", "model"); got != "" {
		t.Errorf("%q", got)
	}
	if got := kilobytes("Absent"); got != -1 {
		t.Error(got)
	}
}
