package buffer

import (
	"math"
	"testing"
)

func TestBlockSize(t *testing.T) {
	for _, c := range []struct{ n, want int64 }{
		{-1, 0}, {0, 0}, {1, 64}, {64, 64}, {65, 128}, {128, 128}, {129, 256}, {256, 256}, {257, 512}, {512, 512},
		{513, 768}, {769, 1024}, {1025, 1280}, {1281, 1536}, {1536, 1536}, {1537, 1792}, {1793, 2048}, {2049, 2560},
		{4096, 4096}, {4097, 5120}, {7169, 8192}, {8193, 12288}, {12289, 16384}, {16385, 20480}, {40000, 40960},
		{1 << 20, 1 << 20}, {1<<20 - 1, 1 << 20}, {1<<20 + 1, 1<<20 + 4096}, {5 << 30, 5 << 30},
		{math.MaxInt64 - 4095, math.MaxInt64 - 4095}, {math.MaxInt64 - 4094, math.MaxInt64}, {math.MaxInt64, math.MaxInt64},
	} {
		if got := BlockSize(c.n); got != c.want {
			t.Errorf("BlockSize(%d) = %d, want %d", c.n, got, c.want)
		}
	}
}

func TestBlockSizeRules(t *testing.T) {
	previous := int64(0)
	for n := int64(1); n <= 3<<20; n++ {
		size := BlockSize(n)
		if size < previous || size < n || BlockSize(size) != size {
			t.Fatalf("BlockSize(%d) = %d after %d, of itself %d", n, size, previous, BlockSize(size))
		}
		if n&(n-1) == 0 && n >= minBlock && size != n {
			t.Fatalf("BlockSize(%d) = %d is not exact", n, size)
		}
		if size%min(defaultAlignment, powerOfTwo(size)) != 0 {
			t.Fatalf("BlockSize(%d) = %d cannot be aligned", n, size)
		}
		gap := max(minGap, n/4)
		if n > sharedBelow {
			gap = max(pageSize, n/4)
		}
		if n > 512 && size-n >= gap {
			t.Fatalf("BlockSize(%d) = %d wastes too much", n, size)
		}
		previous = size
	}
}

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64 // -1: an error
	}{
		{"0", 0}, {"1", 1}, {"4096", 4096}, {"7B", 7}, {"1KB", 1000}, {"1KiB", 1024}, {"1.5MiB", 3 << 19}, {"2GB", 2e9},
		{"2GiB", 2 << 30}, {"3TB", 3e12}, {"1TiB", 1 << 40}, {".5KiB", 512}, {"1.KiB", 1024}, {"1.9", 1}, {"010", 10},
		{"0.1KiB", 102}, {"9223372036854775807", math.MaxInt64}, {"8388607.999999TiB", 9223372036853676296},
		{"", -1}, {"B", -1}, {"K", -1}, {"1K", -1}, {"1Ki", -1}, {"1kB", -1}, {"1kib", -1}, {"1iB", -1}, {"1BB", -1},
		{"1KKB", -1}, {"1PB", -1}, {"1.2.3", -1}, {".", -1}, {"-1", -1}, {"+1", -1}, {"1e3", -1}, {"0x10", -1}, {"1_0", -1},
		{" 1", -1}, {"1 MiB", -1}, {"1MiB ", -1}, {"50%", -1}, {"unlimited", -1}, {"9223372036854775808", -1},
		{"8388608TiB", -1}, {"00000000000000000000000000000000000000001", -1},
	} {
		got, err := ParseBytes(c.text)
		if (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", c.text, got, err, c.want)
		}
	}
}

func TestFormatBytes(t *testing.T) {
	for _, c := range []struct {
		n    int64
		want string
	}{
		{0, "0 B"}, {-5, "-5 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {512 << 10, "512 KiB"}, {8 << 20, "8.0 MiB"},
		{8283750, "7.9 MiB"}, {1<<20 - 1, "1.0 MiB"}, {100 << 20, "100 MiB"}, {5 << 30, "5.0 GiB"}, {-(3 << 20), "-3.0 MiB"},
		{math.MaxInt64, "8.0 EiB"},
	} {
		if got := formatBytes(c.n); got != c.want {
			t.Errorf("formatBytes(%d) = %q, want %q", c.n, got, c.want)
		}
	}
}
