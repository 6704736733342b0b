package lsp

import (
	"strings"
	"unicode/utf8"
)

// tokenKind is what a token is.
type tokenKind uint8

const (
	wordToken   tokenKind = iota // identifiers, keywords and numbers
	stringToken                  // with its quotes; the closing one may be missing
	punctToken                   // one character of anything else, two of "**" and "//"
	commentToken
)

// token is a piece of a text; offsets are bytes.
type token struct {
	kind     tokenKind
	from, to int
	text     string // all of it
}

// value is the text of a string without its quotes and prefix; escapes stay.
func (k token) value() string {
	s := strings.TrimLeft(k.text, "rb")
	if s == "" {
		return ""
	}
	quote := s[:1]
	if len(s) >= 3 && s[1:2] == quote && s[2:3] == quote {
		quote = s[:3]
	}
	s = strings.TrimPrefix(s, quote)
	if k.closed() {
		s = strings.TrimSuffix(s, quote)
	}
	return s
}

// inner is the offset behind the opening quotes of a string.
func (k token) inner() int {
	s := strings.TrimLeft(k.text, "rb")
	n := len(k.text) - len(s) + 1
	if len(s) >= 3 && s[1] == s[0] && s[2] == s[0] {
		n += 2
	}
	return k.from + n
}

// closed reports whether a string has its closing quotes.
func (k token) closed() bool {
	s := strings.TrimLeft(k.text, "rb")
	if len(s) >= 3 && s[1] == s[0] && s[2] == s[0] {
		return len(s) >= 6 && strings.HasSuffix(s, s[:3])
	}
	if len(s) < 2 || s[len(s)-1] != s[0] {
		return false
	}
	escapes := 0
	for i := len(s) - 2; i > 0 && s[i] == '\\'; i-- {
		escapes++
	}
	return escapes%2 == 0
}

// lex cuts a text into tokens. Every text has some: what is unfinished ends with
// its line.
func lex(s string) []token {
	var list []token
	for i := 0; i < len(s); {
		c := s[i]
		n := 1
		kind := punctToken
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			i++
			continue
		case c == '\\' && i+1 < len(s) && (s[i+1] == '\n' || s[i+1] == '\r'):
			i += 2
			continue
		case c == '#':
			kind = commentToken
			for i+n < len(s) && s[i+n] != '\n' && s[i+n] != '\r' {
				n++
			}
		case c == '"' || c == '\'':
			kind, n = stringToken, quoted(s[i:])
		case isWord(c):
			kind = wordToken
			for i+n < len(s) && isWord(s[i+n]) {
				n++
			}
			if w := s[i : i+n]; i+n < len(s) && (s[i+n] == '"' || s[i+n] == '\'') && (w == "r" || w == "b" || w == "rb") {
				kind, n = stringToken, n+quoted(s[i+n:])
			}
		case (c == '*' || c == '/') && i+1 < len(s) && s[i+1] == c:
			n = 2
		}
		list = append(list, token{kind, i, i + n, s[i : i+n]})
		i += n
	}
	return list
}

// quoted is the length of the string literal that s begins with.
func quoted(s string) int {
	quote := s[:1]
	triple := strings.HasPrefix(s, strings.Repeat(quote, 3))
	i := 1
	if triple {
		quote, i = s[:3], 3
	}
	for i < len(s) {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i += 2
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		case !triple && (s[i] == '\n' || s[i] == '\r'):
			return i
		default:
			i++
		}
	}
	return min(i, len(s))
}

func isWord(c byte) bool {
	return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}

// isName reports whether a word can be a name, as a number can't.
func isName(s string) bool {
	return s != "" && isWord(s[0]) && (s[0] < '0' || s[0] > '9') && !isKeyword(s)
}

func isKeyword(s string) bool {
	switch s {
	case "and", "as", "break", "continue", "def", "elif", "else", "for", "if", "in", "lambda", "load", "not", "or", "pass",
		"return", "while", "with":
		return true
	}
	return false
}

// statement is a simple statement, or the head of a compound one: from its first
// token to its last.
type statement struct {
	first, last int // tokens, comments apart
	open        int // brackets that are open at its end
}

// statements cuts tokens into statements. Within brackets a line that is indented
// no deeper than the statement, and begins with no bracket, begins another one:
// somebody is still typing the one before. So does the line behind the colon of
// what begins a block.
func statements(t *text, tokens []token) []statement {
	var list []statement
	last, lastLine := -1, -1
	for i, k := range tokens {
		if k.kind == commentToken {
			continue
		}
		line := t.lineOf(k.from)
		if newStatement(t, tokens, list, line, lastLine, k) {
			list = append(list, statement{first: i, last: i})
		}
		cur := &list[len(list)-1]
		cur.last = i
		switch {
		case k.kind != punctToken:
		case strings.ContainsAny(k.text, "([{"):
			cur.open++
		case strings.ContainsAny(k.text, ")]}"):
			cur.open = max(0, cur.open-1)
		}
		last = k.to
		lastLine = t.lineOf(max(last-1, 0))
	}
	return list
}

func beginsBlock(word string) bool {
	switch word {
	case "def", "if", "elif", "else", "for", "while", "with":
		return true
	}
	return false
}

func newStatement(t *text, tokens []token, list []statement, line, lastLine int, k token) bool {
	switch {
	case len(list) == 0:
		return true
	case line == lastLine, strings.HasSuffix(t.line(lastLine), `\`):
		return false
	}
	cur := list[len(list)-1]
	if cur.open == 0 {
		return true
	}
	own := tokens[cur.first].from - t.starts[t.lineOf(tokens[cur.first].from)]
	deeper := k.from-t.starts[line] > own
	closes := k.kind == punctToken
	head := tokens[cur.last].text == ":" && beginsBlock(tokens[cur.first].text)
	return !closes && (!deeper || head)
}
