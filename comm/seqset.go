package comm

// seqSet remembers which message numbers from one rank have been seen: all
// below low, and the runs above it. Numbers arrive nearly in order, so the
// runs are few.
type seqSet struct {
	low  uint64
	runs []seqRun // sorted, disjoint, all above low
}

type seqRun struct{ from, to uint64 } // half open

// add marks [from, from+n) and reports whether none of it was seen before.
func (s *seqSet) add(from, n uint64) bool {
	to := from + n
	if from < s.low || to < from {
		return false
	}
	i := len(s.runs)
	for i > 0 && s.runs[i-1].from >= from {
		i--
	}
	if i > 0 && s.runs[i-1].to > from || i < len(s.runs) && s.runs[i].from < to {
		return false
	}
	switch {
	case from == s.low:
		s.low = to
		for len(s.runs) > 0 && s.runs[0].from == s.low {
			s.low = s.runs[0].to
			s.runs = s.runs[1:]
		}
	case i > 0 && s.runs[i-1].to == from:
		s.runs[i-1].to = to
		if i < len(s.runs) && s.runs[i].from == to {
			s.runs[i-1].to = s.runs[i].to
			s.runs = append(s.runs[:i], s.runs[i+1:]...)
		}
	case i < len(s.runs) && s.runs[i].from == to:
		s.runs[i].from = from
	default:
		s.runs = append(s.runs, seqRun{})
		copy(s.runs[i+1:], s.runs[i:])
		s.runs[i] = seqRun{from, to}
	}
	return true
}
