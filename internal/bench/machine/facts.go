package machine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sluice-engine/sluice/cuda"
)

// Schema names the layout of Facts as JSON.
const Schema = "sluice.doctor/1"

// Facts describes the machine. Sizes are bytes; -1: no limit, or not known.
type Facts struct {
	Schema     string      `json:"schema"`
	Go         string      `json:"go"`
	OS         string      `json:"os"`
	Kernel     string      `json:"kernel"`
	CPUs       int         `json:"cpus"`
	CPUModel   string      `json:"cpu_model"`
	Memory     int64       `json:"memory_bytes"`
	Available  int64       `json:"memory_available_bytes"`
	Memlock    int64       `json:"memlock_bytes"`
	Nofile     int64       `json:"nofile"`
	HugePages  string      `json:"transparent_huge_pages"`
	Shm        int64       `json:"shm_bytes"`
	Transports []Component `json:"transports"`
	CUDA       Component   `json:"cuda"`
	Warnings   []string    `json:"warnings"`
}

// Component is an optional part of the program.
type Component struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Reason string `json:"reason"` // why not; empty if it is
}

// What is enough for a comfortable run; less is a warning.
const (
	wantMemlock = 64 << 20 // bytes
	wantNofile  = 1024
	wantShm     = 1 << 30 // bytes
)

// Available returns the bytes of memory that can be had without swapping, or 0
// if the machine does not say.
func Available() int64 { return max(0, kilobytes("MemAvailable")) }

// Read collects the facts. transports are those that the program knows.
func Read(transports []Component) Facts {
	f := Facts{
		Schema: Schema, Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH, Kernel: kernel(),
		CPUs: runtime.NumCPU(), CPUModel: field("/proc/cpuinfo", "model name"),
		Memory: kilobytes("MemTotal"), Available: kilobytes("MemAvailable"),
		Memlock: rlimit(unix.RLIMIT_MEMLOCK), Nofile: rlimit(unix.RLIMIT_NOFILE),
		HugePages: hugePages(), Shm: shm(), Transports: transports, Warnings: []string{},
		CUDA: Component{Name: "cuda", Usable: true},
	}
	if err := cuda.Available(); err != nil {
		f.CUDA.Usable, f.CUDA.Reason = false, err.Error()
	}
	warn := func(bad bool, format string, args ...any) {
		if bad {
			f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
		}
	}
	warn(f.Memlock >= 0 && f.Memlock < wantMemlock, "memlock is %d bytes: RDMA and pinned memory need more; raise it with ulimit -l", f.Memlock)
	warn(f.Nofile >= 0 && f.Nofile < wantNofile, "nofile is %d: many ranks or partitions need more; raise it with ulimit -n", f.Nofile)
	warn(f.Shm >= 0 && f.Shm < wantShm, "/dev/shm has %d bytes: shared memory transports need more; remount it with a larger size", f.Shm)
	warn(f.HugePages == "never", "transparent huge pages are off: fresh memory costs more page faults; set enabled to madvise")
	return f
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return string(u.Release[:max(0, bytes.IndexByte(u.Release[:], 0))])
}

// field returns the value of the first "name : value" line of a file.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // opened for reading
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func kilobytes(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", name), " kB"), 10, 64)
	if err != nil {
		return -1
	}
	return n << 10
}

func rlimit(which int) int64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(which, &r); err != nil || r.Cur == unix.RLIM_INFINITY {
		return -1
	}
	return int64(r.Cur)
}

// hugePages returns the mode in use: always, madvise or never.
func hugePages() string {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil {
		return "unknown"
	}
	_, rest, _ := strings.Cut(string(b), "[")
	mode, _, ok := strings.Cut(rest, "]")
	if !ok {
		return "unknown"
	}
	return mode
}

func shm() int64 {
	var s unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &s); err != nil {
		return -1
	}
	return int64(s.Blocks) * s.Bsize
}
