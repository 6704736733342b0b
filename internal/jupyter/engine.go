package jupyter

import (
	"context"
	"io"
)

// Engine is a language: it runs cells, one after another, and answers questions
// about text. Its methods are called by one goroutine at a time.
type Engine interface {
	// Execute runs a cell until its end or until ctx is done. What it says while it
	// runs goes to out.
	Execute(ctx context.Context, code string, out Output) Result
	// Evaluate is the text of an expression's value, without running the session on.
	Evaluate(expr string) (string, error)
	// Complete proposes what may stand in code[start:cursor].
	Complete(code string, cursor int) (candidates []string, start int)
	// Inspect is help on what stands at code[cursor], "" for none.
	Inspect(code string, cursor int) string
	// IsComplete reports whether a cell can be run, or what its next line will begin
	// with.
	IsComplete(code string) (complete bool, indent string)
}

// Output takes what a cell gives while it runs.
type Output interface {
	Stdout() io.Writer
	Stderr() io.Writer
	// Display shows one thing in several media types, of which text/plain is one.
	Display(data map[string]string)
}

// Result is how a cell ended.
type Result struct {
	Value string     // of the last statement, "" if it has none
	Err   *CellError // nil if it went well
	Quit  bool       // the cell ends the session
}

// CellError is what was wrong with a cell.
type CellError struct {
	Name  string   // of the kind of error
	Value string   // on one line
	Trace []string // lines for people
}

// Info is what a kernel says of itself and its language.
type Info struct {
	Implementation, Version string
	Banner                  string
	Language                Language
	Links                   []Link
}

// Language is a language for those who show its text.
type Language struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	MIME      string `json:"mimetype"`
	Extension string `json:"file_extension"`
	Pygments  string `json:"pygments_lexer"`
	Mode      string `json:"codemirror_mode"`
}

// Link is a page that a frontend's help menu lists.
type Link struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}
