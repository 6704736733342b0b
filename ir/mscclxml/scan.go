package mscclxml

import (
	"strings"
)

// What one element may hold in the plain reading.
const (
	maxAttributes = 64
	maxValue      = 64 << 10 // bytes of a name or a value
	maxDepth      = 64       // elements without meaning inside one another
)

// scanner reads the part of XML that programs are written in: elements with
// quoted attributes, comments and processing instructions. What stands before
// the first algo element and after its end is not looked at, since compilers
// print both their programs and their messages.
type scanner struct {
	c     *collector
	text  string
	at    int
	attrs attributes // of the present element
}

// scanPlain fills the document from the file by the rules of the plain reading.
func (c *collector) scanPlain() {
	s := &scanner{c: c, text: c.src.text}
	s.at = findAlgo(s.text, 0)
	if s.at < 0 {
		c.stop(0, CodeSyntax, "there is no <algo> element: not an MSCCL XML program")
		return
	}
	at := int32(s.at)
	s.at += len("<algo")
	open := s.attributes("algo")
	if c.stopped {
		return
	}
	c.openAlgo(at, s.attrs)
	if open {
		s.children("algo", at)
	}
	if !c.stopped && findAlgo(s.text, s.at) >= 0 {
		c.note(warning, int32(findAlgo(s.text, s.at)), CodeIgnored, "a second <algo> element: only the first is read, as by the runtimes")
	}
}

// findAlgo is where the first algo element after from begins, outside comments;
// -1 if there is none.
func findAlgo(text string, from int) int {
	lastEnd := strings.LastIndex(text, "-->")
	for at := from; ; {
		n := strings.IndexByte(text[at:], '<')
		if n < 0 {
			return -1
		}
		at += n
		switch rest := text[at:]; {
		case strings.HasPrefix(rest, "<!--"):
			if at < lastEnd { // else it is text
				at += strings.Index(rest, "-->")
			}
		case strings.HasPrefix(rest, "<algo") && len(rest) > 5 && (blank(rest[5]) || rest[5] == '>' || rest[5] == '/'):
			return at
		}
		at++
	}
}

func blank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *scanner) blanks() {
	for s.at < len(s.text) && blank(s.text[s.at]) {
		s.at++
	}
}

func (s *scanner) fail(format string, args ...any) {
	s.c.stop(int32(min(s.at, len(s.text))), CodeSyntax, format, args...)
}

func nameByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == ':' || c >= 0x80
}

func (s *scanner) word() string {
	from := s.at
	for s.at < len(s.text) && nameByte(s.text[s.at]) {
		s.at++
	}
	return s.text[from:s.at]
}

// attributes reads up to the end of an opening tag and reports whether the
// element has content.
func (s *scanner) attributes(element string) (open bool) {
	s.attrs = s.attrs[:0]
	for !s.c.stopped {
		before := s.at
		s.blanks()
		if s.at == len(s.text) {
			s.fail("the file ends inside <%s>", element)
			return false
		}
		switch c := s.text[s.at]; {
		case c == '>':
			s.at++
			return true
		case c == '/' && strings.HasPrefix(s.text[s.at:], "/>"):
			s.at += 2
			return false
		case !nameByte(c) || s.at == before:
			s.fail("<%s>: got %s, want an attribute or the end of the tag", element, quote(s.text[s.at:s.at+1]))
			return false
		}
		s.attribute(element)
	}
	return false
}

func (s *scanner) attribute(element string) {
	from := s.at
	key := s.word()
	s.blanks()
	if s.at == len(s.text) {
		s.fail("the file ends inside <%s>", element)
		return
	}
	if s.text[s.at] != '=' {
		s.fail("<%s>: attribute %s has no value", element, quote(key))
		return
	}
	s.at++
	s.blanks()
	if s.at == len(s.text) || s.text[s.at] != '"' && s.text[s.at] != '\'' {
		s.fail("<%s>: the value of attribute %s is not quoted", element, quote(key))
		return
	}
	mark := s.text[s.at]
	s.at++
	end := strings.IndexByte(s.text[s.at:], mark)
	switch {
	case end < 0:
		s.fail("<%s>: the value of attribute %s has no end", element, quote(key))
		return
	case end > maxValue || len(key) > maxValue:
		s.fail("<%s>: attribute %s has %d bytes, want at most %d", element, quote(key), end, maxValue)
		return
	case len(s.attrs) == maxAttributes:
		s.fail("<%s>: more than %d attributes", element, maxAttributes)
		return
	}
	value := s.text[s.at : s.at+end]
	if n := strings.IndexByte(value, '<'); n >= 0 {
		s.at += n
		s.fail("<%s>: the value of attribute %s holds a %q: a quote is missing", element, quote(key), '<')
		return
	}
	if strings.IndexByte(value, '&') >= 0 {
		value = entities.Replace(value)
	}
	if s.attrs.has(key) {
		s.c.errorf(int32(from), CodeSyntax, "<%s>: attribute %s is there twice", element, quote(key))
	}
	s.attrs = append(s.attrs, attribute{key, value, int32(from)})
	s.at += end + 1
}

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")

// parents are the elements with meaning and what they stand in.
var parents = map[string]string{"gpu": "algo", "tb": "gpu", "copy": "gpu", "step": "tb"}

// children reads the content of an element up to its end.
func (s *scanner) children(parent string, opened int32) {
	stack := []string{parent}
	for !s.c.stopped {
		s.blanks()
		rest := s.text[s.at:]
		top := stack[len(stack)-1]
		switch {
		case rest == "":
			s.fail("the file ends inside <%s>", top)
		case rest[0] != '<':
			s.fail("<%s>: text between its elements: %s", top, quote(firstLine(rest)))
		case strings.HasPrefix(rest, "<!--"):
			s.skip("-->", "comment")
		case strings.HasPrefix(rest, "<?"):
			s.skip("?>", "processing instruction")
		case strings.HasPrefix(rest, "</"):
			if !s.closing(top) {
				return
			}
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				return
			}
		default:
			if name, open := s.element(top); open {
				if stack = append(stack, name); len(stack) > maxDepth {
					s.fail("elements are nested more than %d deep", maxDepth)
				}
			}
		}
	}
}

func firstLine(s string) string {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		s = s[:n]
	}
	if n := strings.IndexByte(s, '<'); n > 0 {
		s = s[:n]
	}
	return strings.TrimRight(s, "\r \t")
}

func (s *scanner) skip(end, what string) {
	n := strings.Index(s.text[s.at:], end)
	if n < 0 {
		s.fail("the %s has no end", what)
		return
	}
	s.at += n + len(end)
}

func (s *scanner) closing(want string) bool {
	from := s.at
	s.at += 2
	name := s.word()
	s.blanks()
	if name != want || s.at == len(s.text) || s.text[s.at] != '>' {
		s.at = from
		s.fail("got the end of %s, want that of <%s>", quote(firstLine(s.text[from+2:min(from+2+max(len(name), 1), len(s.text))])), want)
		return false
	}
	s.at++
	return true
}

// element reads an opening tag and hands it on.
func (s *scanner) element(top string) (name string, open bool) {
	at := int32(s.at)
	s.at++
	name = s.word()
	if name == "" && s.at == len(s.text) {
		s.fail("the file ends inside <%s>", top)
		return "", false
	}
	if name == "" || len(name) > maxValue {
		s.at = int(at)
		s.fail("<%s>: got %s, want an element", top, quote(firstLine(s.text[at:min(int(at)+20, len(s.text))])))
		return "", false
	}
	open = s.attributes(name)
	c := s.c
	switch {
	case c.stopped:
		return "", false
	case parents[name] != top:
		if _, known := parents[name]; known || name == "algo" {
			s.at = int(at)
			s.fail("<%s> inside <%s>", name, top)
			return "", false
		}
		c.ignore(1, name)
	case name == "gpu":
		c.openGPU(at, s.attrs)
	case name == "tb":
		c.openTB(at, s.attrs)
	case name == "copy":
		c.copyElement(at, s.attrs)
	default:
		c.step(at, s.attrs)
	}
	return name, open
}
