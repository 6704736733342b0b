package ir_test

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// The examples in docs/ir.md are what the writers write.
func TestDocumentedExamples(t *testing.T) {
	doc, err := os.ReadFile("../docs/ir.md")
	if err != nil {
		t.Fatal(err)
	}
	as := func(f texter, err error) texter {
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	parse := map[string]func(io.Reader) texter{
		"chunkdag": func(r io.Reader) texter { d, err := ir.ParseChunkDAG(r, "docs"); return as(d, err) },
		"instrdag": func(r io.Reader) texter { d, err := ir.ParseInstrDAG(r, "docs"); return as(d, err) },
		"onetrace": func(r io.Reader) texter { d, err := ir.ParseOneTrace(r, "docs"); return as(d, err) },
		"program":  func(r io.Reader) texter { d, err := ir.ParseProgram(r, "docs"); return as(d, err) },
	}
	examples := regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if want := len(parse) + 1; len(examples) != want { // programs are two-sided or one-sided
		t.Errorf("got %d examples, want %d", len(examples), want)
	}
	for _, e := range examples {
		if got := text(t, parse[e[1]](strings.NewReader(e[2]))); got != e[2] {
			t.Errorf("%s: got\n%swant\n%s", e[1], got, e[2])
		}
	}
}
