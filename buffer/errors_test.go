package buffer

import "testing"

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			&NoMemoryError{Type: Host, Want: 512 << 10, Limit: 8 << 20, Used: 8283750,
				Holders: []Held{{"received", 5347737}, {"outgoing", 2306867}}, Hint: "raise --limit-host"},
			"buffer: no host memory: need 512 KiB, limit 8.0 MiB, in use 7.9 MiB (received 5.1 MiB, outgoing 2.2 MiB); raise --limit-host",
		},
		{&NoMemoryError{Type: Device, Want: 1, Limit: unlimitedBytes}, "buffer: no device memory: need 1 B, limit none, in use 0 B"},
		{&CorruptError{Where: "frame header", Offset: 12, Peer: 3}, "buffer: corrupt frame header from rank 3 at offset 12"},
		{&CorruptError{Where: "spill extent", File: "/s/1", Offset: 4096, Peer: -1}, "buffer: corrupt spill extent in /s/1 at offset 4096"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Device.String(), "device"}, {Pinned.String(), "pinned"}, {Host.String(), "host"}, {Disk.String(), "disk"},
		{MemType(9).String(), "memtype(9)"}, {HeldByCaller.String(), "caller"}, {HeldOutgoing.String(), "outgoing"},
		{HeldReceived.String(), "received"}, {HeldStaging.String(), "staging"}, {Holder(9).String(), "holder(9)"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
