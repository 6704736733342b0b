package notebook

import (
	"fmt"
	"strings"
	"testing"
)

// show spells a notebook's cells: kind, title, tags, keys, lines and text.
func show(n *Notebook) string {
	var b strings.Builder
	for i := range n.Cells {
		c := &n.Cells[i]
		fmt.Fprintf(&b, "%s %q %v %v %d %d %q\n", [...]string{"code", "text"}[c.Kind], c.Title, c.Tags, c.Keys, c.Line, c.First, c.Source)
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"no cells", "x = 1\n", `code "" [] map[] 0 1 "x = 1"` + "\n"},
		{"an empty beginning", "\n\n# %%\nx = 1\n", `code "" [] map[] 3 4 "x = 1"` + "\n"},
		{"a beginning", "\"\"\"Doc.\"\"\"\n# %%\n\n\ny = 2\n\n\n",
			`code "" [] map[] 0 1 "\"\"\"Doc.\"\"\""` + "\n" + `code "" [] map[] 2 5 "y = 2"` + "\n"},
		{"text", "# %% [markdown]\n# # One\n#\n# two\n#   - three\n", `text "" [] map[] 1 2 "# One\n\ntwo\n  - three"` + "\n"},
		{"text with a title", "#%% A title [md]\n# x\n", `text "A title" [] map[] 1 2 "x"` + "\n"},
		{"keys", `# %% Try it tags=["exercise", "gpu"] demand="steps <= 4"` + "\nx\n",
			`code "Try it" [exercise gpu] map[demand:steps <= 4] 1 2 "x"` + "\n"},
		{"keys alone", `# %% tags=["solution"]` + "\nx\n", `code "" [solution] map[] 1 2 "x"` + "\n"},
		{"a title with brackets", "# %% a[0] and b[1] now\nx\n", `code "a[0] and b[1] now" [] map[] 1 2 "x"` + "\n"},
		{"a comment throughout", `# %% tags=["active-ipynb"]` + "\n# for i in x:\n#     y\n#\n\n# z\n",
			`code "" [active-ipynb] map[] 1 2 "for i in x:\n    y\n\n\nz"` + "\n"},
		{"other line ends", "# %% [markdown]\r\n# a\r\n# b\r\n", `text "" [] map[] 1 2 "a\nb"` + "\n"},
		{"no header", "## %%\n # %%\n# %%%\n# %%x\n", `code "" [] map[] 0 1 "## %%\n # %%\n# %%%\n# %%x"` + "\n"},
		{"an empty cell", "# %%\n# %% [markdown]\n", `code "" [] map[] 1 2 ""` + "\n" + `text "" [] map[] 2 3 ""` + "\n"},
	} {
		n, err := Parse("f.star", []byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if got := show(n); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for in, want := range map[string]string{
		"# %% [markdown]\n# a\nb = 1\n":                "f.star:3:1: a line of a cell of text must begin with a number sign and a space",
		"# %% [markdown]\n# a\n\n# b\n":                "f.star:3:1: a line of a cell of text must",
		"# %% tags=[\"active-ipynb\"]\n# a\nb\n":       "f.star:3:1: a line of a cell of code that is a comment (active-ipynb) must",
		"x\n# %% a [raw]\n":                            "f.star:2:1: a cell of kind [raw]: got raw, want markdown, or no kind for code",
		"# %% tags=[\"a\", 1]\n":                       "f.star:1:1: the header's key tags: want",
		"# %% tags=\"a\"\n":                            "f.star:1:1: the header's key tags: want",
		"# %% demand=\"a\n":                            "f.star:1:1: the header's key demand: want",
		"# %% demand=\"a\" and more\n":                 `f.star:1:1: the header's keys: got and more, want name="value" or tags=["a", "b"]`,
		"# %% [a]\n# %% [markdown]\nx\n":               "f.star:1:1: a cell of kind [a]: got a, want markdown, or no kind for code\nf.star:3:1: a line",
		"# %% [markdown] tags=[\"a\"] b=\"c\" d=[1]\n": "f.star:1:1: the header's key d: want",
	} {
		n, err := Parse("f.star", []byte(in))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %s", in, n, err, want)
		}
	}
}

func TestParts(t *testing.T) {
	for _, c := range []struct{ name, in, parts, code string }{
		{"code alone", "# %%\na = 1\n\nb = 2\n", `2 "a = 1\n\nb = 2\n"`, "a = 1\n\nb = 2"},
		{"code and commands", "# %%\na = 1\n# %check\n# %run cpu\n# no command\nb\n",
			`2 "a = 1\n"; 3 %"check"; 4 %"run cpu"; 5 "# no command\nb\n"`, "a = 1\ncheck\nrun cpu\n# no command\nb"},
		{"commands alone", "# %%\n\n# %dag\n\n# %?chunk\n", `3 %"dag"; 5 %"?chunk"`, "dag\n\n?chunk"},
		{"no commands", "# %%\n    # %check\n# % check\n#%check\n", `2 "    # %check\n# % check\n#%check\n"`, "    # %check\n# % check\n#%check"},
		{"a comment throughout", "# %% tags=[\"active-ipynb\"]\n# a = 1\n# %check\n", `2 "a = 1\n"; 3 %"check"`, "a = 1\ncheck"},
		{"a command twice a comment", "# %% tags=[\"active-ipynb\"]\n# # %check\n", `2 %"check"`, "check"},
		{"text", "# %% [markdown]\n# %check\n", "", "%check"},
	} {
		n, err := Parse("f.star", []byte(c.in))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []string
		for _, p := range n.Cells[0].Parts() {
			mark := map[bool]string{true: "%"}[p.Command]
			got = append(got, fmt.Sprintf("%d %s%q", p.Line, mark, p.Text))
		}
		if s := strings.Join(got, "; "); s != c.parts {
			t.Errorf("%s: got %s, want %s", c.name, s, c.parts)
		}
		if n.Cells[0].Kind == Code && n.Cells[0].Code() != c.code {
			t.Errorf("%s: got %q, want %q", c.name, n.Cells[0].Code(), c.code)
		}
	}
}

func TestTitle(t *testing.T) {
	for in, want := range map[string]string{
		"# %% [markdown]\n# # First copy\n#\n# One chunk\n# moves.\n#\n# More.\n": "First copy|One chunk moves.",
		"# %%\n# # no text\n# %% [markdown]\n# a\n# # Late\n":                     "Late|",
		"x = 1\n": "f.star|",
	} {
		n, err := Parse("f.star", []byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Title() + "|" + n.Summary(); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("# %% a [markdown] tags=[\"x\"]\n# # T\n# %%\nx\n# %run\n"))
	f.Add([]byte("# %% tags=[\"active-ipynb\"]\n# # %x\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		n, err := Parse("f", in)
		if err != nil {
			return
		}
		_, _ = n.Title(), n.Summary()
		for i := range n.Cells {
			c := &n.Cells[i]
			for _, p := range c.Parts() {
				if p.Line < c.First || strings.TrimSpace(p.Text) == "" {
					t.Fatalf("part %+v of a cell from line %d", p, c.First)
				}
			}
		}
	})
}
