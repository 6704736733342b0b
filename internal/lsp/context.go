package lsp

import (
	"sort"
	"strings"

	"go.starlark.net/syntax"

	"github.com/mscclsh/mscclsh/starlib"
)

// call is the call that an offset is in the parentheses of, by tokens alone, so that
// it may be unfinished.
type call struct {
	name     string // of the function or method
	at       int    // offset of name
	receiver string // the text before the dot, "" for a function
	index    int    // of the argument at the offset, among those without a keyword
	keyword  string // that the argument at the offset has
	given    map[string]bool
}

// tokenAt is the number of the token that holds the character at an offset, or of a
// word that ends there; -1 for none.
func (x *tree) tokenAt(offset int) int {
	found := -1
	for i, k := range x.tokens {
		if k.from > offset {
			break
		}
		ends := offset == k.to && k.kind == wordToken
		if ends || offset < k.to && (found < 0 || k.kind != punctToken) {
			found = i
		}
	}
	return found
}

// stringAt is the number of the string or comment that an offset is within: behind
// its opening quote, and not behind its closing one. -1 for none.
func (x *tree) stringAt(offset int) int {
	for i, k := range x.tokens {
		switch {
		case k.from >= offset:
			return -1
		case k.kind == stringToken && offset >= k.inner() && (offset < k.to || offset == k.to && !k.closed()):
			return i
		case k.kind == commentToken && offset <= k.to:
			return i
		}
	}
	return -1
}

// before is the number of the last token that ends at or before an offset, comments
// apart; -1 for none.
func (x *tree) before(offset int) int {
	found := -1
	for i, k := range x.tokens {
		if k.to > offset {
			break
		}
		if k.kind != commentToken {
			found = i
		}
	}
	return found
}

// begin is the number of the first token of the statement that token i is in.
func (x *tree) begin(i int) int {
	if j := sort.Search(len(x.stmts), func(j int) bool { return x.stmts[j].first > i }); j > 0 {
		return x.stmts[j-1].first
	}
	return 0
}

// callAround finds the innermost call whose parentheses an offset is in; token i is
// the last one before it. nil for none.
func (x *tree) callAround(i int) *call {
	if i < 0 {
		return nil
	}
	first := x.begin(i)
	depth, c := 0, &call{given: map[string]bool{}}
	atArg := true // whether nothing but the current argument has been passed
	for j := i; j >= first; j-- {
		k := x.tokens[j]
		if k.kind == wordToken && depth == 0 && j+1 < len(x.tokens) && x.tokens[j+1].text == "=" && !x.isEqual(j+1) {
			c.given[k.text] = true
			if atArg {
				c.keyword = k.text
			}
		}
		if k.kind != punctToken {
			continue
		}
		switch k.text {
		case ")", "]", "}":
			depth++
		case ",":
			if depth == 0 {
				c.index++
				atArg = false
			}
		case "(", "[", "{":
			if depth > 0 {
				depth--
				continue
			}
			if k.text != "(" || j == 0 || x.tokens[j-1].kind != wordToken || !isName(x.tokens[j-1].text) && x.tokens[j-1].text != "load" {
				return nil
			}
			if j >= 2 && x.tokens[j-2].text == "def" {
				return nil
			}
			c.name, c.at = x.tokens[j-1].text, x.tokens[j-1].from
			if j >= 2 && x.tokens[j-2].text == "." {
				c.receiver = x.primary(j - 3)
			}
			c.index -= x.keywordsBefore(j, i)
			c.given = x.keywordsOf(j, c.given)
			return c
		}
	}
	return nil
}

// isEqual reports whether the "=" token i begins "==".
func (x *tree) isEqual(i int) bool {
	return i+1 < len(x.tokens) && x.tokens[i+1].text == "=" && x.tokens[i].to == x.tokens[i+1].from
}

// keywordsBefore counts the arguments with a keyword between the parenthesis, token
// open, and token last that are complete: they don't count as places.
func (x *tree) keywordsBefore(open, last int) int {
	n, depth, keyword := 0, 0, false
	for j := open + 1; j <= last; j++ {
		k := x.tokens[j]
		switch {
		case k.kind == wordToken && depth == 0 && j+1 < len(x.tokens) && x.tokens[j+1].text == "=" && !x.isEqual(j+1):
			keyword = true
		case k.kind != punctToken:
		case strings.ContainsAny(k.text, "([{"):
			depth++
		case strings.ContainsAny(k.text, ")]}"):
			depth--
		case k.text == "," && depth == 0:
			if keyword {
				n++
			}
			keyword = false
		}
	}
	return n
}

// keywordsOf adds the keywords behind the offset, up to the end of the statement.
func (x *tree) keywordsOf(open int, given map[string]bool) map[string]bool {
	first, depth := x.begin(open), 0
	for j := open + 1; j < len(x.tokens) && x.begin(j) == first; j++ {
		k := x.tokens[j]
		switch {
		case k.kind == wordToken && depth == 0 && j+1 < len(x.tokens) && x.tokens[j+1].text == "=" && !x.isEqual(j+1):
			given[k.text] = true
		case k.kind != punctToken:
		case strings.ContainsAny(k.text, "([{"):
			depth++
		case strings.ContainsAny(k.text, ")]}"):
			if depth--; depth < 0 {
				return given
			}
		}
	}
	return given
}

// primary is the text of the expression that ends with token i and that a dot may
// follow: names, calls, indices and their chains.
func (x *tree) primary(i int) string {
	end := i
	for i >= 0 {
		k := x.tokens[i]
		switch {
		case k.kind == punctToken && strings.ContainsAny(k.text, ")]}"):
			depth := 0
			for ; i >= 0; i-- {
				if t := x.tokens[i]; t.kind == punctToken && strings.ContainsAny(t.text, ")]}") {
					depth++
				} else if t.kind == punctToken && strings.ContainsAny(t.text, "([{") {
					if depth--; depth == 0 {
						break
					}
				}
			}
			if i < 0 {
				return ""
			}
			if i > 0 && (x.tokens[i-1].kind == wordToken && isName(x.tokens[i-1].text) || x.tokens[i-1].text == ")" || x.tokens[i-1].text == "]") &&
				x.tokens[i].text != "{" {
				i--
				continue
			}
		case k.kind == stringToken, k.kind == wordToken && isName(k.text):
		default:
			return ""
		}
		if i < 2 || x.tokens[i-1].text != "." {
			return x.text.s[x.tokens[i].from:x.tokens[end].to]
		}
		i -= 2
	}
	return ""
}

// typeOfText is the type of an expression that is a piece of the text at an offset.
func (l *language) typeOfText(x *tree, expr string, offset int) string {
	if expr == "" {
		return ""
	}
	e, err := (&syntax.FileOptions{Set: true}).ParseExpr(x.name, expr, 0)
	if err != nil {
		return ""
	}
	return l.infer(x, e, offset, 0)
}

// signatureOf is what the table says of a call, nil where it says nothing.
func (l *language) signatureOf(x *tree, c *call) *starlib.Signature {
	if c.receiver != "" {
		return l.method(l.typeOfText(x, c.receiver, c.at), c.name)
	}
	if x.lookup(c.name, c.at) != nil {
		return nil
	}
	return l.sigs[c.name]
}

// known is the innermost call around token i that the table knows, and what it says of
// it; nil for none.
func (l *language) known(x *tree, i int) (*call, *starlib.Signature) {
	for i >= 0 {
		if c := x.callAround(i); c != nil {
			if sig := l.signatureOf(x, c); sig != nil {
				return c, sig
			}
		}
		i = x.opening(i) - 1
	}
	return nil, nil
}

// opening is the number of the innermost bracket that is open behind token i, in its
// statement; -1 for none.
func (x *tree) opening(i int) int {
	depth := 0
	for first := x.begin(i); i >= first; i-- {
		switch k := x.tokens[i]; {
		case k.kind != punctToken:
		case strings.ContainsAny(k.text, ")]}"):
			depth++
		case strings.ContainsAny(k.text, "([{"):
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return -1
}

// param is the parameter that the argument at the offset is for, "" if none.
func (c *call) param(s *starlib.Signature) string {
	if c.keyword != "" {
		return c.keyword
	}
	if c.index >= 0 && c.index < len(s.Params) {
		return s.Params[c.index].Name
	}
	return ""
}
