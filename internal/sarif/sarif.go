// Package sarif renders messages as SARIF 2.1.0 (OASIS), the format in which
// editors and continuous integration show findings at the lines they are about.
//
// It imports internal/diag only and knows nothing of who found what.
package sarif

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Rule describes a class of findings.
type Rule struct {
	ID       string
	Title    string
	Text     string
	Fix      string
	Severity diag.Severity
}

// Tool is who speaks.
type Tool struct {
	Name, Version string
	Rules         []Rule
}

const schema = "https://json.schemastore.org/sarif-2.1.0.json"

type log struct {
	Version string `json:"version"`
	Schema  string `json:"$schema"`
	Runs    []run  `json:"runs"`
}

type run struct {
	Tool    tool     `json:"tool"`
	Results []result `json:"results"`
}

type tool struct {
	Driver driver `json:"driver"`
}

type driver struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Rules   []rule `json:"rules"`
}

type rule struct {
	ID      string        `json:"id"`
	Short   text          `json:"shortDescription"`
	Full    text          `json:"fullDescription"`
	Help    text          `json:"help"`
	Default configuration `json:"defaultConfiguration"`
}

type configuration struct {
	Level string `json:"level"`
}

type text struct {
	Text string `json:"text"`
}

type result struct {
	RuleID    string     `json:"ruleId"`
	RuleIndex int        `json:"ruleIndex"`
	Level     string     `json:"level"`
	Message   text       `json:"message"`
	Locations []location `json:"locations,omitempty"`
	Related   []location `json:"relatedLocations,omitempty"`
}

type location struct {
	Physical physical `json:"physicalLocation"`
	Message  *text    `json:"message,omitempty"`
}

type physical struct {
	Artifact artifact `json:"artifactLocation"`
	Region   *region  `json:"region,omitempty"`
}

type artifact struct {
	URI string `json:"uri"`
}

type region struct {
	StartLine   int32 `json:"startLine"`
	StartColumn int32 `json:"startColumn,omitempty"`
}

// Write renders messages as one run of one tool. A code that the tool has no rule
// for gets one with an empty description. Messages without a file are results
// without a location, as SARIF allows.
func Write(w io.Writer, t Tool, messages diag.List) error {
	r := run{Tool: tool{driver{Name: t.Name, Version: t.Version, Rules: []rule{}}}, Results: []result{}}
	index := map[string]int{}
	for _, x := range t.Rules {
		index[x.ID] = len(r.Tool.Driver.Rules)
		r.Tool.Driver.Rules = append(r.Tool.Driver.Rules, rule{ID: x.ID, Short: text{x.Title}, Full: text{x.Text},
			Help: text{x.Fix}, Default: configuration{level(x.Severity)}})
	}
	for _, m := range messages {
		i, ok := index[m.Code]
		if !ok {
			i = len(r.Tool.Driver.Rules)
			index[m.Code] = i
			r.Tool.Driver.Rules = append(r.Tool.Driver.Rules, rule{ID: m.Code, Short: text{m.Code}, Full: text{m.Code},
				Help: text{m.Code}, Default: configuration{level(m.Severity)}})
		}
		r.Results = append(r.Results, resultOf(m, i))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(log{Version: "2.1.0", Schema: schema, Runs: []run{r}}); err != nil {
		return fmt.Errorf("writing SARIF: %w", err)
	}
	return nil
}

// resultOf puts notes with a place among the related locations and the others,
// with the advice, into the text.
func resultOf(m *diag.Message, rule int) result {
	r := result{RuleID: m.Code, RuleIndex: rule, Level: level(m.Severity)}
	parts := []string{m.Text}
	if l, ok := place(m.Pos); ok {
		r.Locations = []location{l}
	}
	for _, n := range m.Notes {
		l, ok := place(n.Pos)
		if !ok {
			parts = append(parts, n.Text)
			continue
		}
		l.Message = &text{n.Text}
		r.Related = append(r.Related, l)
	}
	if m.Suggestion != "" {
		parts = append(parts, m.Suggestion)
	}
	r.Message.Text = strings.Join(parts, "\n")
	return r
}

func place(p diag.Pos) (location, bool) {
	if p.File == "" {
		return location{}, false
	}
	// A URI: blanks and percent signs are escaped, slashes are not.
	l := location{Physical: physical{Artifact: artifact{(&url.URL{Path: filepath.ToSlash(p.File)}).EscapedPath()}}}
	if p.Line > 0 {
		l.Physical.Region = &region{p.Line, p.Col}
	}
	return l, true
}

func level(s diag.Severity) string {
	switch s {
	case diag.Error:
		return "error"
	case diag.Warning:
		return "warning"
	}
	return "note"
}
