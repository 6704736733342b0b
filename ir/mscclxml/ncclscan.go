package mscclxml

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
)

const warning = diag.Warning

// The limits of the runtimes' tokenizer (their xml.h or msccl_parser.h).
const (
	ncclString     = 255 // bytes of a value; a name has one less
	ncclAttributes = 16
	ncclNesting    = 1000 // elements without meaning; each takes a call of their parser's stack
)

// errEnd is the end of the file between elements.
var errEnd = errors.New("end of file")

// ncclScanner reads as NCCL's topology reader does, on which the readers of all
// three runtimes are based. It is not an XML parser: names end at a space, '>',
// '/' or a line's end; values at the next double quote; nothing but spaces and
// line ends may stand between elements; and one space stands between attributes.
type ncclScanner struct {
	c     *collector
	text  string
	at    int
	attrs attributes
}

// node is what one call of their xmlGetNode returns.
type node struct {
	at          int32
	name        string
	end, single bool // </name>, <name/>
}

// scanRuntime fills the document from the file as the runtimes do. A rank's
// reader keeps only its own thread blocks; this one keeps those of all.
func (c *collector) scanRuntime() {
	s := &ncclScanner{c: c, text: c.src.text}
	first := true
	err := s.load("", func(n node) error {
		if n.name != "algo" {
			return s.ignore(n)
		}
		if !first { // read and kept, but the first one is taken
			return s.algo(n, &collector{o: c.o, src: c.src})
		}
		first = false
		c.openAlgo(n.at, s.attrs)
		return s.algo(n, c)
	})
	switch {
	case c.stopped:
	case err != nil:
		c.refuse(int32(min(s.at, len(s.text))), "syntax", "%s", err)
	case first:
		c.refuse(0, "syntax", "there is no <algo> element")
	}
}

func (s *ncclScanner) algo(n node, c *collector) error {
	return s.content(n, func(n node) error {
		if n.name != "gpu" {
			return s.ignore(n)
		}
		if c.openGPU(n.at, s.attrs); c.stopped {
			return errEnd
		}
		if !s.attrs.has("id") {
			return fmt.Errorf("a gpu element without id")
		}
		return s.content(n, func(n node) error {
			if n.name != "tb" {
				return s.ignore(n)
			}
			if c.openTB(n.at, s.attrs); c.stopped {
				return errEnd
			}
			return s.content(n, func(n node) error {
				if n.name != "step" {
					return s.ignore(n)
				}
				if c.step(n.at, s.attrs); c.stopped {
					return errEnd
				}
				return s.content(n, func(n node) error {
					return fmt.Errorf("<%s> inside <step>", n.name)
				})
			})
		})
	})
}

// content hands the elements inside n to child.
func (s *ncclScanner) content(n node, child func(node) error) error {
	if n.single {
		return nil
	}
	return s.load(n.name, child)
}

// load is their xmlLoadSub.
func (s *ncclScanner) load(head string, child func(node) error) error {
	for {
		n, err := s.node()
		switch {
		case errors.Is(err, errEnd) && head == "":
			return nil
		case errors.Is(err, errEnd):
			return fmt.Errorf("<%s> has no end", head)
		case err != nil:
			return err
		case n.end && n.name == head:
			return nil
		case n.end && head == "":
			return fmt.Errorf("</%s> ends nothing", n.name)
		case n.end:
			return fmt.Errorf("</%s> ends <%s>", n.name, head)
		}
		if err := child(n); err != nil {
			return err
		}
	}
}

// ignore skips an element without meaning. Their reader stores its children in
// its own place, so that whatever ends it matches; so do its children's.
func (s *ncclScanner) ignore(n node) error {
	if n.single {
		return nil
	}
	for depth := 1; depth > 0; {
		n, err := s.node()
		if err != nil {
			return err
		}
		switch {
		case n.end:
			depth--
		case !n.single:
			if depth++; depth > ncclNesting {
				return fmt.Errorf("elements are nested more than %d deep", ncclNesting)
			}
		}
	}
	return nil
}

// node is their xmlGetNode.
func (s *ncclScanner) node() (node, error) {
	for {
		for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\r') {
			s.at++
		}
		if s.at == len(s.text) {
			return node{}, errEnd
		}
		if s.text[s.at] != '<' {
			return node{}, fmt.Errorf("their reader takes no %q between elements, only spaces and line ends", s.text[s.at])
		}
		n := node{at: int32(s.at)}
		s.at++
		name, _, last, err := s.token(false)
		if err != nil {
			return n, err
		}
		if strings.HasPrefix(name, "!--") {
			if err := s.comment(name[3:]); err != nil {
				return n, err
			}
			continue
		}
		n.name = name
		if name == "" && last == '/' {
			n.end = true
			if n.name, _, last, err = s.token(false); err == nil && last != '>' {
				err = fmt.Errorf("got %q at the end of </%s>", last, n.name)
			}
			return n, err
		}
		return s.tag(n, last)
	}
}

// tag reads attributes up to the end of a tag.
func (s *ncclScanner) tag(n node, last byte) (node, error) {
	s.attrs = s.attrs[:0]
	for last == ' ' {
		at := int32(s.at)
		key, value, end, err := s.token(true)
		if err != nil {
			return n, err
		}
		last = end
		if len(s.attrs) < ncclAttributes {
			s.attrs = append(s.attrs, attribute{key, value, at})
		}
	}
	if last == '/' {
		n.single = true
		var err error
		if _, _, last, err = s.token(true); err != nil {
			return n, err
		}
	}
	if last != '>' {
		return n, fmt.Errorf("<%s>: got %q, want a space before an attribute, or '>'", n.name, last)
	}
	return n, nil
}

// token is their xmlGetToken: a name, with a value where one is allowed.
func (s *ncclScanner) token(valued bool) (name, value string, last byte, err error) {
	for from := s.at; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '=':
			name = s.text[from:s.at]
			s.at++
			if !valued {
				return name, "", 0, fmt.Errorf("got '=' after %s, which is no attribute", quote(name))
			}
			value, last, err = s.value()
			return name, value, last, err
		case s.at-from == ncclString-1:
			return "", "", 0, fmt.Errorf("a name of %d bytes or more", ncclString)
		case c == ' ' || c == '>' || c == '/' || c == '\n' || c == '\r':
			s.at++
			return s.text[from : s.at-1], "", c, nil
		}
	}
	return "", "", 0, fmt.Errorf("the file ends inside an element")
}

// value is their xmlGetValue: either quote opens, only a double one closes.
func (s *ncclScanner) value() (string, byte, error) {
	if s.at == len(s.text) {
		return "", 0, fmt.Errorf("the file ends inside an element")
	}
	if q := s.text[s.at]; q != '"' && q != '\'' {
		return "", 0, fmt.Errorf("a value without quotes")
	}
	s.at++
	n := strings.IndexByte(s.text[s.at:], '"')
	if n < 0 || s.at+n+1 >= len(s.text) {
		return "", 0, fmt.Errorf("the file ends inside a value")
	}
	if n > ncclString {
		return "", 0, fmt.Errorf("a value of %d bytes: their reader has room for %d", n, ncclString)
	}
	v := s.text[s.at : s.at+n]
	s.at += n + 2
	return v, s.text[s.at-1], nil
}

// comment skips to the end of a comment; start is what its first word holds.
func (s *ncclScanner) comment(start string) error {
	from := s.at - 1 - len(start) // the delimiter of the word is part of it
	n := strings.Index(s.text[from:], "-->")
	if n < 0 {
		return fmt.Errorf("a comment without end")
	}
	s.at = max(s.at, from+n+3)
	return nil
}
