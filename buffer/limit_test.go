package buffer

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestLimitText(t *testing.T) {
	for _, c := range []struct {
		text string
		want Limit
		back string // what the Limit is written as
	}{
		{"default", Limit{}, "default"},
		{"unlimited", Unlimited, "unlimited"},
		{"off", Off, "off"},
		{"0", Bytes(0), "0"},
		{"1000", Bytes(1000), "1000"},
		{"1024", Bytes(1024), "1KiB"},
		{"1536KiB", Bytes(3 << 19), "1536KiB"},
		{"8MiB", Bytes(8 << 20), "8MiB"},
		{"0.5TiB", Bytes(1 << 39), "512GiB"},
		{"80%", Percent(80), "80%"},
		{"12.50%", Percent(12.5), "12.5%"},
		{"100%", Percent(100), "100%"},
	} {
		var got Limit
		if err := got.UnmarshalText([]byte(c.text)); err != nil || got != c.want {
			t.Errorf("%q: %v, %v; want %v", c.text, got, err, c.want)
		}
		if got.String() != c.back {
			t.Errorf("%q is written as %q, want %q", c.text, got, c.back)
		}
	}
	for _, text := range []string{"", "%", "101%", "-1%", "1.2.3%", "1e1%", "80 %", "Off", "none", "1k", "NaN%"} {
		got := Bytes(7)
		if err := got.UnmarshalText([]byte(text)); err == nil || got != Bytes(7) {
			t.Errorf("%q: %v, %v; want an error and no change", text, got, err)
		}
	}
}

func TestConfigJSON(t *testing.T) {
	cfg := Config{Alignment: 64, MemoryWait: 5}
	cfg.Limits[Host] = Bytes(1 << 20)
	text, err := json.Marshal(cfg)
	const want = `{"Limits":["default","default","1MiB","default"],"Alignment":64,"MemoryWait":5}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	var back Config
	if err := json.Unmarshal(text, &back); err != nil || back != cfg {
		t.Errorf("%+v, %v; want %+v", back, err, cfg)
	}
}

func TestLimitResolve(t *testing.T) {
	total, err := physicalMemory()
	if err != nil || total < 1<<20 {
		t.Fatalf("physical memory: %d, %v", total, err)
	}
	for _, c := range []struct {
		limit Limit
		typ   MemType
		want  int64 // -1: an error that matches ErrUnsupported
	}{
		{Limit{}, Host, unlimitedBytes}, {Unlimited, Host, unlimitedBytes}, {Off, Host, 0},
		{Bytes(0), Host, 0}, {Bytes(5), Host, 5}, {Percent(50), Host, int64(float64(total) * 0.5)}, {Percent(0), Host, 0},
		{Limit{}, Device, 0}, {Off, Device, 0}, {Bytes(0), Device, 0}, {Percent(0), Device, 0},
		{Percent(80), Device, -1}, {Bytes(1), Device, -1}, {Unlimited, Device, -1},
		{Limit{}, Pinned, 0}, {Bytes(1), Pinned, -1}, {Limit{}, Disk, 0}, {Unlimited, Disk, -1},
	} {
		got, err := c.limit.resolve(c.typ)
		if errors.Is(err, errors.ErrUnsupported) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%v of %v: %d, %v; want %d", c.limit, c.typ, got, err, c.want)
		}
	}
}

func TestConfigFaultsComeTogether(t *testing.T) {
	cfg := Config{Alignment: 3, MemoryWait: -1}
	cfg.Limits[Pinned] = Bytes(1)
	cfg.Limits[Host] = Bytes(-1)
	_, err := NewResource(nil, nil, cfg)
	const want = "buffer: configure: limit 1 of pinned: pinned memory needs a CUDA device, which this build cannot open: unsupported operation; " +
		"limit -1 of host: -1 bytes is negative; alignment 3 is not a power of two up to 4096; memory wait -1ns is negative"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
}

var limitGrammar = regexp.MustCompile(`^[0-9.]+(B|[KMGT]i?B|%)?$`)

func FuzzLimit(f *testing.F) {
	for _, s := range []string{"8MiB", "80%", "0.1KiB", "unlimited", "default", "1.2.3", "9e9", "..%", strings.Repeat("9", 60), ".000000000000000000000000000000000000001%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var l Limit
		if err := l.UnmarshalText([]byte(s)); err != nil {
			if !strings.HasPrefix(err.Error(), "buffer: parse ") {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		word := s == "default" || s == "unlimited" || s == "off"
		if !word && !limitGrammar.MatchString(s) {
			t.Errorf("%q is taken as %v", s, l)
		}
		var back Limit
		if err := back.UnmarshalText([]byte(l.String())); err != nil || back != l {
			t.Errorf("%q is %v, read back as %v, %v", s, l, back, err)
		}
		if err := l.validate(); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	})
}
