package notebook

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Tags that mean something to whoever runs a notebook. Others are allowed.
const (
	TagComment  = "active-ipynb"     // a code cell that is a comment in the script
	TagFails    = "raises-exception" // a code cell that is meant to fail
	TagExercise = "exercise"         // a code cell to be completed
	TagSolution = "solution"         // a code cell that completes the exercise before it
	TagGPU      = "gpu"              // a code cell whose output depends on the machine
)

// Kind says what a cell holds.
type Kind uint8

// The kinds of cells.
const (
	Code Kind = iota
	Text
)

// Cell is one part of a notebook.
type Cell struct {
	Kind  Kind
	Title string
	Tags  []string
	Keys  map[string]string // others than tags, nil without any
	Line  int32             // of the header, from 1; 0 for what stands before the first one
	First int32             // of Source
	// Source is what the cell says: Markdown, or code as it runs, without empty lines
	// around it.
	Source string
}

// Has reports whether the cell has a tag.
func (c *Cell) Has(tag string) bool { return slices.Contains(c.Tags, tag) }

// Part is a piece of a code cell: code, or one command of the shell.
type Part struct {
	Command bool
	Text    string // of a command without its mark; of code with its line ends
	Line    int32  // in the file, from 1
}

// Notebook is a script as cells.
type Notebook struct {
	File  string
	Cells []Cell
}

var (
	header  = regexp.MustCompile(`^# ?%%(?:[ \t]+(.*))?$`)
	keys    = regexp.MustCompile(`(?:^|\s)[A-Za-z_][A-Za-z0-9_-]*=["\[]`)
	key     = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_-]*)=`)
	typed   = regexp.MustCompile(`^(.*?)\s*\[([^\]]*)\]$`)
	command = regexp.MustCompile(`^# %([A-Za-z?].*)$`)
)

// Parse divides a script. Line ends may be those of any system.
func Parse(file string, source []byte) (*Notebook, error) {
	text := strings.TrimPrefix(string(source), "\ufeff")
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	n := &Notebook{File: file}
	var list diag.List
	cell, from := Cell{}, 0
	end := func(to int) {
		if m := cell.fill(file, lines[from:to], int32(from)+1); m != nil {
			list = append(list, m)
		}
		if cell.Line > 0 || cell.Source != "" {
			n.Cells = append(n.Cells, cell)
		}
	}
	for i, line := range lines {
		m := header.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		end(i)
		cell, from = Cell{Line: int32(i) + 1}, i+1
		if err := cell.head(strings.TrimSpace(m[1])); err != "" {
			list = append(list, diag.Errorf(diag.Pos{File: file, Line: cell.Line, Col: 1}, "cell", "%s", err))
		}
	}
	end(len(lines))
	if len(list) > 0 {
		return nil, list
	}
	return n, nil
}

// head reads what follows a header's mark, and says what is wrong with it.
func (c *Cell) head(text string) string {
	rest := ""
	if at := keys.FindStringIndex(text); at != nil {
		text, rest = text[:at[0]], text[at[0]:]
	}
	c.Title = strings.TrimSpace(text)
	if m := typed.FindStringSubmatch(c.Title); m != nil {
		c.Title = m[1]
		switch m[2] {
		case "markdown", "md":
			c.Kind = Text
		default:
			return "a cell of kind [" + m[2] + "]: got " + m[2] + ", want markdown, or no kind for code"
		}
	}
	for strings.TrimSpace(rest) != "" {
		m := key.FindStringSubmatch(rest)
		if m == nil {
			return `the header's keys: got ` + strings.TrimSpace(rest) + `, want name="value" or tags=["a", "b"]`
		}
		dec := json.NewDecoder(strings.NewReader(rest[len(m[0]):]))
		var value any = new(string)
		if m[1] == "tags" {
			value = &c.Tags
		}
		if err := dec.Decode(value); err != nil {
			return "the header's key " + m[1] + `: want "value" in quotes, or tags=["a", "b"]`
		}
		if s, ok := value.(*string); ok {
			if c.Keys == nil {
				c.Keys = map[string]string{}
			}
			c.Keys[m[1]] = *s
		}
		rest = rest[len(m[0])+int(dec.InputOffset()):]
	}
	return ""
}

// fill takes the cell's lines, of which the first has the number line.
func (c *Cell) fill(file string, lines []string, line int32) *diag.Message {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines, line = lines[1:], line+1
	}
	c.First = line
	if c.Kind == Text || c.Has(TagComment) {
		lines = slices.Clone(lines)
		for i, l := range lines {
			switch {
			case strings.HasPrefix(l, "# "):
				lines[i] = l[2:]
			case strings.TrimSpace(l) == "#":
				lines[i] = ""
			case strings.TrimSpace(l) == "" && c.Kind == Code:
				lines[i] = ""
			default:
				what := "text"
				if c.Kind == Code {
					what = "code that is a comment (" + TagComment + ")"
				}
				return diag.Errorf(diag.Pos{File: file, Line: line + int32(i), Col: 1}, "cell",
					"a line of a cell of %s must begin with a number sign and a space", what).
					Suggest("a line `# %%%%` begins a cell of code")
			}
		}
	}
	c.Source = strings.Join(lines, "\n")
	return nil
}

// Parts are a code cell's code and commands, in order. What is empty between
// commands is left out.
func (c *Cell) Parts() []Part {
	if c.Kind == Text || c.Source == "" {
		return nil
	}
	var parts []Part
	code, from := []string{}, c.First
	flush := func(next int32) {
		if text := strings.Join(code, "\n"); strings.TrimSpace(text) != "" {
			parts = append(parts, Part{Text: text + "\n", Line: from})
		}
		code, from = code[:0], next
	}
	for i, line := range strings.Split(c.Source, "\n") {
		at := c.First + int32(i)
		if text, ok := commandOf(c, line); ok {
			flush(at + 1)
			parts = append(parts, Part{Command: true, Text: text, Line: at})
			continue
		}
		code = append(code, line)
	}
	flush(0)
	return parts
}

// commandOf is the command that a line of a cell holds. In a cell that is a comment
// throughout its mark has lost the comment's sign.
func commandOf(c *Cell, line string) (string, bool) {
	if c.Has(TagComment) {
		line = "# " + strings.TrimPrefix(line, "# ")
	}
	m := command.FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	return strings.TrimSpace(m[1]), true
}

// Code is a code cell as one would type it: commands without their marks.
func (c *Cell) Code() string {
	lines := strings.Split(c.Source, "\n")
	for i, line := range lines {
		if text, ok := commandOf(c, line); ok {
			lines[i] = text
		}
	}
	return strings.Join(lines, "\n")
}

// Title is the first heading of the notebook, or the file's name without one.
func (n *Notebook) Title() string {
	for i := range n.Cells {
		if n.Cells[i].Kind != Text {
			continue
		}
		for _, line := range strings.Split(n.Cells[i].Source, "\n") {
			if title, ok := strings.CutPrefix(line, "# "); ok {
				return strings.TrimSpace(title)
			}
		}
	}
	return n.File
}

// Summary is the first paragraph after the first heading, as one line.
func (n *Notebook) Summary() string {
	for i := range n.Cells {
		if n.Cells[i].Kind != Text {
			continue
		}
		_, rest, found := strings.Cut("\n"+n.Cells[i].Source, "\n# ")
		if !found {
			continue
		}
		_, rest, _ = strings.Cut(rest, "\n")
		para, _, _ := strings.Cut(strings.TrimSpace(rest), "\n\n")
		return plainInline(strings.Join(strings.Fields(para), " "))
	}
	return ""
}
