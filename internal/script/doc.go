// Package script runs text transcripts: a file of commands, each block of them
// followed by the output it must give. A state machine is tested by reading
// such a file as a story, and a change of behaviour is reviewed as a diff of it.
//
// A file is a sequence of blocks, parted by blank lines:
//
//	# a comment, kept when the file is rewritten
//	insert 3 bytes=16
//	finish
//	----
//	send rank=1 chunk=0
//	send rank=1 finish
//
// The lines above ---- are commands: a name, then words parted by spaces; a
// word may be key=value. The lines below are the joined output of the commands
// and hold no blank line. A block without output ends at its ----.
//
// A test package whose transcripts shall be rewritten with what the commands
// gave declares a flag of its own for it, which this package looks up:
//
//	var _ = flag.Bool("update", false, "rewrite the transcripts")
//
// The package keeps no state, and it imports nothing of this module.
package script
