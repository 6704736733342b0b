package notebook

import (
	"html"
	"regexp"
	"strings"
)

var (
	heading  = regexp.MustCompile(`^(#{1,6}) +(.*)$`)
	item     = regexp.MustCompile(`^(?:([-*])|[0-9]+\.) +(.*)$`)
	inline   = regexp.MustCompile("(`+)((?s:.+?))(`+)|\\*\\*([^*]+)\\*\\*|\\*([^*\\s][^*]*)\\*|\\[([^\\]]+)\\]\\(([^)\\s]+)\\)")
	tableRow = regexp.MustCompile(`^\|.*\|$`)
	safeLink = regexp.MustCompile(`^(?:https?://|#|[A-Za-z0-9_./-]+$)`)
)

// markdownHTML makes HTML of the Markdown that lessons use: headings, paragraphs,
// lists, fenced code, tables, and within lines code, emphasis and links. Everything
// else is text. Headings get down levels deeper.
func markdownHTML(text string, down int) string {
	var b strings.Builder
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		switch m := heading.FindStringSubmatch(line); {
		case strings.TrimSpace(line) == "":
			i++
		case m != nil:
			level := string(rune('0' + min(len(m[1])+down, 6)))
			b.WriteString("<h" + level + ">" + inlineHTML(m[2]) + "</h" + level + ">\n")
			i++
		case strings.HasPrefix(line, "```"):
			i = fencedHTML(&b, lines, i)
		case tableRow.MatchString(line):
			i = tableHTML(&b, lines, i)
		case item.MatchString(line):
			i = listHTML(&b, lines, i)
		default:
			from := i
			for i < len(lines) && !beginsBlock(lines[i]) || i == from {
				i++
			}
			b.WriteString("<p>" + inlineHTML(strings.Join(lines[from:i], "\n")) + "</p>\n")
		}
	}
	return b.String()
}

// beginsBlock reports whether a line ends a paragraph.
func beginsBlock(line string) bool {
	return strings.TrimSpace(line) == "" || heading.MatchString(line) || strings.HasPrefix(line, "```") ||
		tableRow.MatchString(line) || item.MatchString(line)
}

// fencedHTML writes the fenced code that begins at line i and returns the line
// after it.
func fencedHTML(b *strings.Builder, lines []string, i int) int {
	language, from := strings.TrimPrefix(lines[i], "```"), i+1
	for i++; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
	}
	code := strings.Join(lines[from:i], "\n")
	if strings.TrimSpace(language) == "python" {
		code = highlight(code)
	} else {
		code = html.EscapeString(code)
	}
	b.WriteString(`<pre class="nb-fence">` + code + "</pre>\n")
	return i + 1
}

func listHTML(b *strings.Builder, lines []string, i int) int {
	tag := "ol"
	if item.FindStringSubmatch(lines[i])[1] != "" {
		tag = "ul"
	}
	b.WriteString("<" + tag + ">\n")
	for i < len(lines) {
		m := item.FindStringSubmatch(lines[i])
		if m == nil {
			break
		}
		text := m[2]
		for i++; i < len(lines) && strings.HasPrefix(lines[i], "  "); i++ {
			text += "\n" + strings.TrimSpace(lines[i])
		}
		b.WriteString("<li>" + inlineHTML(text) + "</li>\n")
	}
	b.WriteString("</" + tag + ">\n")
	return i
}

func tableHTML(b *strings.Builder, lines []string, i int) int {
	b.WriteString("<table>\n")
	for row := 0; i < len(lines) && tableRow.MatchString(lines[i]); i, row = i+1, row+1 {
		if row == 1 && strings.Trim(lines[i], "|-: ") == "" {
			continue
		}
		tag := "td"
		if row == 0 {
			tag = "th"
		}
		b.WriteString("<tr>")
		for _, cell := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(lines[i], "|"), "|"), "|") {
			b.WriteString("<" + tag + ">" + inlineHTML(strings.TrimSpace(cell)) + "</" + tag + ">")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n")
	return i
}

// inlineHTML makes HTML of a line or several.
func inlineHTML(text string) string {
	var b strings.Builder
	for text != "" {
		m := inline.FindStringSubmatchIndex(text)
		if m == nil {
			b.WriteString(html.EscapeString(text))
			break
		}
		b.WriteString(html.EscapeString(text[:m[0]]))
		group := func(n int) string { return text[m[2*n]:m[2*n+1]] }
		switch {
		case m[2] >= 0 && group(1) == group(3):
			b.WriteString("<code>" + html.EscapeString(group(2)) + "</code>")
		case m[8] >= 0:
			b.WriteString("<strong>" + inlineHTML(group(4)) + "</strong>")
		case m[10] >= 0:
			b.WriteString("<em>" + inlineHTML(group(5)) + "</em>")
		case m[12] >= 0 && safeLink.MatchString(group(7)):
			b.WriteString(`<a href="` + html.EscapeString(group(7)) + `">` + inlineHTML(group(6)) + "</a>")
		default:
			b.WriteString(html.EscapeString(text[m[0]:m[1]]))
		}
		text = text[m[1]:]
	}
	return b.String()
}
