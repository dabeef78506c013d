// Package machine reads the facts about this machine that decide how fast and
// how far a shuffle goes. It reads /proc and /sys and changes nothing; what
// cannot be read is absent, with the reason.
package machine
