package machine

import (
	"fmt"
	"io"
	"strings"

	"github.com/sluice-engine/sluice/internal/bench/report"
)

// WriteText writes the facts for people.
func (f Facts) WriteText(w io.Writer) error {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "%-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("go", "%s %s   kernel %s", f.Go, f.OS, f.Kernel)
	line("cpu", "%d x %s", f.CPUs, f.CPUModel)
	line("memory", "%s, %s available   huge pages %s", size(f.Memory), size(f.Available), f.HugePages)
	line("limits", "memlock %s   nofile %s   shm %s", size(f.Memlock), count(f.Nofile), size(f.Shm))
	for _, t := range append(f.Transports, f.CUDA) {
		if t.Usable {
			line(t.Name, "yes")
		} else {
			line(t.Name, "no: %s", t.Reason)
		}
	}
	for _, warning := range f.Warnings {
		line("WARN", "%s", warning)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func size(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	return report.Bytes(n)
}

func count(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	return fmt.Sprint(n)
}
