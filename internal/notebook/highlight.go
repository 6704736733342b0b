package notebook

import (
	"html"
	"regexp"
	"slices"
	"strings"
)

// token is what code is made of, for highlighting: strings with three quotes over
// several lines, strings, comments, numbers, names, and everything else a byte at a
// time. An open string reaches to the end of its line, or of the text.
var token = regexp.MustCompile(`(?s)^(?:` +
	`("""(?:\\.|[^\\])*?(?:"""|\z)|'''(?:\\.|[^\\])*?(?:'''|\z)|"(?:\\[^\n]|[^"\\\n])*"?|'(?:\\[^\n]|[^'\\\n])*'?)` +
	`|(#[^\n]*)` +
	`|((?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?))` +
	`|([A-Za-z_][A-Za-z0-9_]*))`)

// keywords are the words that the language keeps for itself.
var keywords = strings.Fields("and as break continue def elif else False for if in lambda load None not or pass return True while with")

// highlight makes HTML of code. Classes are s for strings, c for comments, n for
// numbers, k for keywords, f for what is called.
func highlight(code string) string {
	var b strings.Builder
	for code != "" {
		m := token.FindStringSubmatch(code)
		if m == nil {
			n := 1
			for n < len(code) && code[n]&0xc0 == 0x80 { // the rest of a character
				n++
			}
			b.WriteString(html.EscapeString(code[:n]))
			code = code[n:]
			continue
		}
		text, rest := m[0], code[len(m[0]):]
		class := ""
		switch {
		case m[1] != "":
			class = "s"
		case m[2] != "":
			class = "c"
		case m[3] != "":
			class = "n"
		case slices.Contains(keywords, text):
			class = "k"
		case strings.HasPrefix(rest, "("):
			class = "f"
		}
		writeSpans(&b, class, text)
		code = rest
	}
	return b.String()
}

// writeSpans writes text in a class, a span a line, so that lines can be told apart
// afterwards.
func writeSpans(b *strings.Builder, class, text string) {
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		if class == "" || line == "" {
			b.WriteString(html.EscapeString(line))
			continue
		}
		b.WriteString(`<span class="nb-` + class + `">` + html.EscapeString(line) + `</span>`)
	}
}
