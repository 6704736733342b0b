package pyfront

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/starlib"
)

// usageLine is the first line of a script's help.
func usageLine(file string, params []starlib.Param) string {
	words := []string{"usage:", filepath.Base(file), "[-h]"}
	for i := range params {
		if p := &params[i]; !p.Positional {
			w := invocation(p)
			if !p.Required {
				w = "[" + w + "]"
			}
			words = append(words, w)
		}
	}
	for i := range params {
		if p := &params[i]; p.Positional {
			w := metavar(p)
			if !p.Required {
				w = "[" + w + "]"
			}
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

func metavar(p *starlib.Param) string {
	switch {
	case len(p.Choices) > 0:
		return "{" + strings.Join(p.Choices, ",") + "}"
	case p.Positional:
		return p.Name
	}
	return strings.ToUpper(p.Name)
}

// invocation is a flag with its value.
func invocation(p *starlib.Param) string {
	flag := "--" + p.Name
	if len(p.Spellings) > 0 {
		flag = p.Spellings[0]
	}
	if p.Type == "bool" && len(p.Choices) == 0 {
		if len(p.Spellings) > 1 && p.Spellings[1] == opposite(flag) {
			flag += " | " + p.Spellings[1]
		}
		return flag
	}
	return flag + " " + metavar(p)
}

// Usage is the help of a script, in argparse's form.
func Usage(file string, params []starlib.Param) string {
	var b strings.Builder
	b.WriteString(usageLine(file, params) + "\n")
	section := func(title string, positional bool, first [][2]string) {
		rows := first
		for i := range params {
			p := &params[i]
			if p.Positional != positional {
				continue
			}
			left := metavar(p)
			if positional {
				left = p.Name
			} else if len(p.Spellings) > 0 {
				left = strings.Join(p.Spellings, ", ")
				if p.Type != "bool" || len(p.Choices) > 0 {
					left += strings.TrimPrefix(invocation(p), p.Spellings[0])
				}
			}
			rows = append(rows, [2]string{left, helpOf(p)})
		}
		if len(rows) == 0 {
			return
		}
		width := 0
		for _, r := range rows {
			width = max(width, min(utf8.RuneCountInString(r[0]), 30))
		}
		fmt.Fprintf(&b, "\n%s:\n", title)
		for _, r := range rows {
			b.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s  %s", width, r[0], r[1]), " ") + "\n")
		}
	}
	section("positional arguments", true, nil)
	section("options", false, [][2]string{{"-h, --help", "show this help"}})
	return strings.TrimSuffix(b.String(), "\n")
}

// helpOf is a parameter's help with what it leaves out: choices of a positional
// argument, and the default.
func helpOf(p *starlib.Param) string {
	text := p.Help
	if p.Positional && len(p.Choices) > 0 {
		text = strings.TrimSpace(text + " {" + strings.Join(p.Choices, ",") + "}")
	}
	if p.Default != "" && p.Type != "bool" && !strings.Contains(strings.ToLower(text), "default") {
		text = strings.TrimSpace(text + " (default: " + p.Default + ")")
	}
	return text
}
