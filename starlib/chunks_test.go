package starlib_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// section is one script of a file in testdata: files are split at lines that
// consist of three dashes. A comment ### "regexp" says that its line is at fault
// and what the message must match.
type section struct {
	name string // file:line, the line where it begins
	text string // as many lines before it as in the file, so that positions agree
	want map[int32]*regexp.Regexp
}

var expectation = regexp.MustCompile(`### ("(?:[^"\\]|\\.)*"|` + "`[^`]*`" + `)\s*$`)

// sections reads one file.
func sections(t *testing.T, file string) []section {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []section
	line := int32(1)
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		s := section{name: fmt.Sprintf("%s:%d", filepath.Base(file), line), want: map[int32]*regexp.Regexp{},
			text: strings.Repeat("\n", int(line)-1) + part}
		for l := range strings.SplitSeq(part, "\n") {
			if m := expectation.FindStringSubmatch(l); m != nil {
				pattern, err := strconv.Unquote(m[1])
				if err != nil {
					t.Fatalf("%s:%d: %v", file, line, err)
				}
				s.want[line] = regexp.MustCompile(pattern)
			} else if strings.Contains(l, "###") {
				t.Fatalf("%s:%d: malformed expectation", file, line)
			}
			line++
		}
		line++ // the dashes
		list = append(list, s)
	}
	return list
}

// match compares what was reported with what the section expects.
func (s *section) match(t *testing.T, err error) {
	t.Helper()
	left := map[int32]*regexp.Regexp{}
	for l, re := range s.want {
		left[l] = re
	}
	for _, m := range diag.Messages(err) {
		re, ok := left[m.Pos.Line]
		switch {
		case !ok:
			t.Errorf("unexpected error: %v", m)
		case !re.MatchString(m.Error()):
			t.Errorf("line %d:\n got %v\nwant %s", m.Pos.Line, m, re)
		}
		delete(left, m.Pos.Line)
	}
	for l, re := range left {
		t.Errorf("line %d: no error matching %s", l, re)
	}
}

func TestScripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.star")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range names {
		for _, s := range sections(t, file) {
			t.Run(s.name, func(t *testing.T) {
				_, err := starlib.Load(context.Background(), starlib.Options{
					File: filepath.Base(file), Source: []byte(s.text), MaxSteps: 10_000_000,
					ReadFile: func(name string) ([]byte, error) { return os.ReadFile("testdata/lib/" + name) },
					Host:     starlib.Host{Topology: testTopology, Check: testCheck},
				})
				s.match(t, err)
			})
		}
	}
}

// testTopology knows one machine.
func testTopology(name string, nodes int32) (*ir.Topology, error) {
	if name != "box" {
		return nil, errors.New("no machine is called " + name)
	}
	return ir.FullyConnected(4 * nodes), nil
}

// testCheck holds a program right when it has as many operations as ranks: what
// a script gets to see is only whether the Host's answer arrives.
func testCheck(p *starlib.Program) (bool, error) { return p.Ops() == int(p.Spec().Ranks()), nil }

// testTopologies knows every name.
func testTopologies(_ string, nodes int32) (*ir.Topology, error) {
	return ir.FullyConnected(8 * nodes), nil
}
