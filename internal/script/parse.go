package script

import (
	"fmt"
	"strconv"
	"strings"
)

// A Cmd is one command line of a transcript.
type Cmd struct {
	Line int      // in its file, from 1
	Name string   // the first word
	Args []string // the other words
}

// Value returns the text after key= of the first argument of that form.
func (c Cmd) Value(key string) (string, bool) {
	for _, a := range c.Args {
		if v, ok := strings.CutPrefix(a, key+"="); ok {
			return v, true
		}
	}
	return "", false
}

// Int returns the integer after key=, or def when no argument has that form.
// The error says which line is wrong.
func (c Cmd) Int(key string, def int64) (int64, error) {
	v, ok := c.Value(key)
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("script: line %d: %s: %s=%q is not an integer", c.Line, c.Name, key, v)
	}
	return n, nil
}

// String returns the command as a line, with single spaces.
func (c Cmd) String() string {
	return strings.Join(append([]string{c.Name}, c.Args...), " ")
}

const separator = "----"

// A block is what stands between two blank lines.
type block struct {
	line   int      // of the first line, from 1
	source []string // comments and commands as written
	cmds   []Cmd    // empty: a block of comments only
	want   string   // output, each line ended by a newline
}

// parse splits a transcript into blocks. A block with commands but without a
// separator is an error, so that a forgotten one does not pass as a comment.
func parse(text string) ([]block, error) {
	var blocks []block
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		if blank(lines[i]) {
			i++
			continue
		}
		b := block{line: i + 1}
		i = b.parseSource(lines, i)
		switch {
		case i < len(lines) && lines[i] == separator:
			i = b.parseOutput(lines, i+1)
		case len(b.cmds) > 0:
			return nil, fmt.Errorf("script: line %d: block without %s", b.line, separator)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// parseSource reads comments and commands from lines[i] on and returns the
// index of the first line that is neither.
func (b *block) parseSource(lines []string, i int) int {
	for ; i < len(lines) && !blank(lines[i]) && lines[i] != separator; i++ {
		b.source = append(b.source, lines[i])
		if strings.HasPrefix(lines[i], "#") {
			continue
		}
		words := strings.Fields(lines[i])
		b.cmds = append(b.cmds, Cmd{Line: i + 1, Name: words[0], Args: words[1:]})
	}
	return i
}

// parseOutput reads the expected output up to the next blank line.
func (b *block) parseOutput(lines []string, i int) int {
	for ; i < len(lines) && !blank(lines[i]); i++ {
		b.want += lines[i] + "\n"
	}
	return i
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// format is the inverse of parse, with one blank line between blocks.
func format(blocks []block) string {
	var out strings.Builder
	for i, b := range blocks {
		if i > 0 {
			out.WriteByte('\n')
		}
		for _, line := range b.source {
			out.WriteString(line + "\n")
		}
		if len(b.cmds) > 0 {
			out.WriteString(separator + "\n" + b.want)
		}
	}
	return out.String()
}
