package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The standard library is the judge of what is JSON.
func TestScannerAcceptsJSON(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"a"`, `"\u00e9\n"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\x"`, `"\u12"`, `"`, `\`,
		"0", "1", "-1", "01", "1.5", "1e9", "1e999", "-", ".5", "1.", "+1", "0x1", "1_0", "NaN", "Infinity", "true", "tru", "null", " ", "\n", "\t", "\x00", "é"})
	value := rapid.SampledFrom([]string{`{"a":[1,{"b":null}],"c":"x"}`, "[]", "{}", "[[1,2],[]]", "-0.5e+3", `""`})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieces, 0, 8).Draw(t, "pieces"), "")
		if rapid.Bool().Draw(t, "whole") {
			text = value.Draw(t, "value")
			if at := rapid.IntRange(0, len(text)).Draw(t, "at"); rapid.Bool().Draw(t, "spoil") {
				text = text[:at] + pieces.Draw(t, "piece") + text[at:]
			}
		}
		s := newScanner([]byte(text), "f")
		s.skip()
		s.finish()
		if got, want := s.err == nil, json.Valid([]byte(text)); got != want {
			t.Fatalf("%q: accepted %t, want %t (%v)", text, got, want, s.err)
		}
	})
}

func TestScannerStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		s := newScanner(b, "f")
		if got := s.str("a string"); s.err != nil || got != want {
			t.Fatalf("%s: got %q, %v", b, got, s.err)
		}
		if s := newScanner([]byte(text(want)), "f"); s.str("a string") != want {
			t.Fatalf("written as %s", text(want))
		}
	})
}

func TestScannerErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[1, 2", `f:1:6: got the end of the file, want a comma or "]"`},
		{"{\"a\": 1\n \"b\": 2}", `f:2:2: got a string, want a comma or "}"`},
		{`{"a" 1}`, `f:1:6: got "1", want a colon`},
		{`{1: 1}`, `f:1:2: got "1", want a key`},
		{"\"a\nb\"", "f:1:1: the string does not end"},
		{`"\q"`, "f:1:1: the string is malformed"},
		{"\"\xff\"", "f:1:1: the string is malformed"},
		{"[NaN]", `f:1:2: got "NaN", want a value`},
		{"1 2", `f:1:3: got "2" after the plan, want the end of the file`},
		{strings.Repeat("[", 100), "f:1:66: nested more than 64 deep"},
	} {
		s := newScanner([]byte(c.text), "f")
		s.skip()
		s.finish()
		if s.err == nil || s.err.Error() != c.want {
			t.Errorf("%.20q: got %v\nwant %s", c.text, s.err, c.want)
		}
	}
}
