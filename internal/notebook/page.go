package notebook

import (
	"bufio"
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"
)

// Output is what running a code cell gave.
type Output struct {
	Line     int // the number that the first line of the cell's code has in messages
	Text     string
	Failed   bool
	Pictures []string // drawings as SVG, in the order in which the cell asked for them
	Both     bool     // the text says more than the pictures
}

// Rendered is a notebook with an output for each cell.
type Rendered struct {
	*Notebook
	ID      string // of its place in the page
	Outputs []Output
}

//go:embed page.css
var pageCSS string

// page writes HTML; the writer keeps its error until the end.
type page struct{ *bufio.Writer }

// WritePage writes notebooks with their outputs as one page that needs nothing
// else. Everything but the pictures is escaped.
func WritePage(w io.Writer, title string, list []Rendered) error {
	p := page{bufio.NewWriterSize(w, 1<<16)}
	p.printf("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"+
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"+
		"<meta name=\"color-scheme\" content=\"light dark\">\n<title>%s</title>\n<style>\n%s</style>\n</head>\n<body>\n",
		html.EscapeString(title), pageCSS)
	if len(list) > 1 {
		p.printf("<nav class=\"nb-nav\">\n<p>%s</p>\n<ol>\n", html.EscapeString(title))
		for i := range list {
			p.printf("<li><a href=\"#%s\">%s</a></li>\n", html.EscapeString(list[i].ID), html.EscapeString(list[i].Title()))
		}
		p.printf("</ol>\n</nav>\n")
	}
	p.printf("<main>\n")
	for i := range list {
		p.notebook(&list[i], i+1, len(list) > 1)
	}
	p.printf("</main>\n</body>\n</html>\n")
	if err := p.Flush(); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func (p page) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p page) notebook(r *Rendered, number int, several bool) {
	p.printf("<article id=\"%s\">\n", html.EscapeString(r.ID))
	if several {
		p.printf("<p class=\"nb-number\">Lesson %d</p>\n", number)
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Kind == Text {
			p.printf("<section class=\"nb-text\">\n%s</section>\n", markdownHTML(c.Source, 0))
			continue
		}
		var out Output
		if i < len(r.Outputs) {
			out = r.Outputs[i]
		}
		p.code(c, &out)
	}
	p.printf("</article>\n")
}

// code writes a cell of code and what came of it. Solutions are folded.
func (p page) code(c *Cell, out *Output) {
	switch {
	case c.Has(TagSolution):
		p.printf("<details class=\"nb-cell nb-solution\"><summary>%s</summary>\n", html.EscapeString(orWord(c.Title, "Solution")))
	case c.Has(TagExercise):
		p.printf("<section class=\"nb-cell nb-exercise\">\n")
		p.title(orWord(c.Title, "Exercise"))
	default:
		p.printf("<section class=\"nb-cell\">\n")
		p.title(c.Title)
	}
	p.lines(c, out.Line)
	for _, svg := range out.Pictures {
		p.printf("<figure>%s</figure>\n", svg)
	}
	p.output(out)
	if c.Has(TagSolution) {
		p.printf("</details>\n")
		return
	}
	p.printf("</section>\n")
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

func (p page) title(text string) {
	if text != "" {
		p.printf("<p class=\"nb-title\">%s</p>\n", html.EscapeString(text))
	}
}

// lines writes code with the numbers that messages call its lines by, commands
// after a prompt.
func (p page) lines(c *Cell, first int) {
	commands := map[int32]bool{}
	numbered := false
	for _, part := range c.Parts() {
		if part.Command {
			commands[part.Line] = true
		} else {
			numbered = true
		}
	}
	p.printf("<pre class=\"nb-code\">")
	plain := strings.Split(c.Code(), "\n")
	for i, line := range strings.Split(highlight(c.Code()), "\n") {
		number, class := "", ""
		switch {
		case commands[c.First+int32(i)]:
			class, line = " nb-command", html.EscapeString(plain[i]) // no code of the language
		case numbered && first > 0:
			number = fmt.Sprint(first + i)
		}
		p.printf("<span class=\"nb-line%s\" data-n=\"%s\">%s\n</span>", class, number, line)
	}
	p.printf("</pre>\n")
}

// output writes what a cell printed. Beside a picture, the text that stands for it
// in a terminal is folded.
func (p page) output(out *Output) {
	text := strings.TrimRight(out.Text, "\n")
	switch {
	case text == "":
	case len(out.Pictures) > 0:
		open := ""
		if out.Both {
			open = " open"
		}
		p.printf("<details class=\"nb-more\"%s><summary>as text</summary><pre class=\"nb-out\">%s</pre></details>\n", open, html.EscapeString(text))
	default:
		class := "nb-out"
		if out.Failed {
			class += " nb-failed"
		}
		p.printf("<pre class=\"%s\">%s</pre>\n", class, html.EscapeString(text))
	}
}
