package notebook

import (
	"strings"
	"unicode/utf8"
)

// Plain makes lines for a terminal of Markdown: paragraphs and lists broken anew at
// width, tables with even columns, code as it is, so that it can be copied from the
// screen. head is applied to headings.
func Plain(text string, width int, head func(string) string) []string {
	var out []string
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		switch m := heading.FindStringSubmatch(line); {
		case strings.TrimSpace(line) == "":
			out = append(out, "")
			i++
		case m != nil:
			out = append(out, head(plainInline(m[2])))
			i++
		case strings.HasPrefix(line, "```"):
			for i++; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
				out = append(out, strings.TrimRight(lines[i], " "))
			}
			i++
		case tableRow.MatchString(line):
			from := i
			for i < len(lines) && tableRow.MatchString(lines[i]) {
				i++
			}
			out = append(out, plainTable(lines[from:i])...)
		case item.MatchString(line):
			para := line
			for i++; i < len(lines) && strings.HasPrefix(lines[i], "  "); i++ {
				para += " " + strings.TrimSpace(lines[i])
			}
			mark := para[:len(para)-len(item.FindStringSubmatch(para)[2])]
			broken := breakLines(plainInline(para[len(mark):]), max(width-len(mark), 20))
			for k, l := range broken {
				if k > 0 {
					mark = strings.Repeat(" ", len(mark))
				}
				out = append(out, mark+l)
			}
		default:
			from := i
			for i < len(lines) && !beginsBlock(lines[i]) || i == from {
				i++
			}
			out = append(out, breakLines(plainInline(strings.Join(lines[from:i], " ")), max(width, 20))...)
		}
	}
	return out
}

// plainInline takes the marks for emphasis and links out; code keeps its quotes.
func plainInline(text string) string {
	return inline.ReplaceAllStringFunc(text, func(match string) string {
		m := inline.FindStringSubmatch(match)
		switch {
		case m[4] != "":
			return plainInline(m[4])
		case m[5] != "":
			return plainInline(m[5])
		case m[6] != "":
			return plainInline(m[6]) + " (" + m[7] + ")"
		}
		return match
	})
}

// breakLines breaks text between words; code in quotes stays in one piece where it
// fits.
func breakLines(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range words(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// words cuts text at blanks that are not within a pair of backquotes.
func words(text string) []string {
	var out []string
	word, quoted := "", false
	for _, w := range strings.Fields(text) {
		if quoted {
			word += " " + w
		} else {
			word = w
		}
		if strings.Count(w, "`")%2 == 1 {
			quoted = !quoted
		}
		if !quoted {
			out = append(out, word)
			word = ""
		}
	}
	if word != "" {
		out = append(out, word)
	}
	return out
}

// plainTable aligns the columns of a table.
func plainTable(rows []string) []string {
	var cells [][]string
	var widths []int
	for i, row := range rows {
		if i == 1 && strings.Trim(row, "|-: ") == "" {
			continue
		}
		var list []string
		for k, c := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|"), "|") {
			c = plainInline(strings.TrimSpace(c))
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], utf8.RuneCountInString(c))
			list = append(list, c)
		}
		cells = append(cells, list)
	}
	var out []string
	for i, list := range cells {
		line := "  "
		for k, c := range list {
			line += c + strings.Repeat(" ", widths[k]-utf8.RuneCountInString(c)+2)
		}
		out = append(out, strings.TrimRight(line, " "))
		if i == 0 {
			rule := "  "
			for _, w := range widths {
				rule += strings.Repeat("-", w) + "  "
			}
			out = append(out, strings.TrimRight(rule, " "))
		}
	}
	return out
}
