package notebook

import (
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"
)

func TestHighlight(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"x = 1":                  `x = <span class="nb-n">1</span>`,
		"for i in r:":            `<span class="nb-k">for</span> i <span class="nb-k">in</span> r:`,
		`chunk(0, "a\"b")`:       `<span class="nb-f">chunk</span>(<span class="nb-n">0</span>, <span class="nb-s">&#34;a\&#34;b&#34;</span>)`,
		"a # b < \"c\"\nd":       `a <span class="nb-c"># b &lt; &#34;c&#34;</span>` + "\nd",
		"\"\"\"a\n'b\"\"\" + c":  `<span class="nb-s">&#34;&#34;&#34;a</span>` + "\n" + `<span class="nb-s">&#39;b&#34;&#34;&#34;</span> + c`,
		"'open\nx":               `<span class="nb-s">&#39;open</span>` + "\nx",
		"'''open\nx":             `<span class="nb-s">&#39;&#39;&#39;open</span>` + "\n" + `<span class="nb-s">x</span>`,
		"if(x) <b> é 0x1F 1.5e3": `<span class="nb-k">if</span>(x) &lt;b&gt; é <span class="nb-n">0x1F</span> <span class="nb-n">1.5e3</span>`,
	} {
		if got := highlight(in); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", in, got, want)
		}
	}
}

// Without its marks, highlighted code is the code.
func FuzzHighlight(f *testing.F) {
	tag := regexp.MustCompile(`<[^>]*>`)
	unescape := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&")
	f.Add("with X('é', \"\"\"a\nb\"\"\") as p: # <c>\n  1.5")
	f.Fuzz(func(t *testing.T, in string) {
		if got := unescape.Replace(tag.ReplaceAllString(highlight(in), "")); got != in {
			t.Errorf("%q became %q", in, got)
		}
	})
}

func TestMarkdownHTML(t *testing.T) {
	for in, want := range map[string]string{
		"# A\nb\nc\n\nd":                  "<h1>A</h1>\n<p>b\nc</p>\n<p>d</p>\n",
		"a `b < *c*` **d** *e* [f](g.md)": "<p>a <code>b &lt; *c*</code> <strong>d</strong> <em>e</em> <a href=\"g.md\">f</a></p>\n",
		"a `b\nc` d":                      "<p>a <code>b\nc</code> d</p>\n",
		"[x](javascript:alert(1))":        "<p>[x](javascript:alert(1))</p>\n",
		"[x](data:text/html,y)":           "<p>[x](data:text/html,y)</p>\n",
		"<script>&":                       "<p>&lt;script&gt;&amp;</p>\n",
		"- a\n  b\n- c\n\ntext":           "<ul>\n<li>a\nb</li>\n<li>c</li>\n</ul>\n<p>text</p>\n",
		"1. a\n2. b":                      "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n",
		"```\n# <x>\n```\nafter":          "<pre class=\"nb-fence\"># &lt;x&gt;</pre>\n<p>after</p>\n",
		"```python\nif x:\n```":           "<pre class=\"nb-fence\"><span class=\"nb-k\">if</span> x:</pre>\n",
		"| a | b |\n|---|---|\n| 1 | |":   "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td></td></tr>\n</table>\n",
		"a * b * c and 2 (n-1)/n S":       "<p>a * b * c and 2 (n-1)/n S</p>\n",
		"```\nnever closed":               "<pre class=\"nb-fence\">never closed</pre>\n",
		"####### seven":                   "<p>####### seven</p>\n",
	} {
		if got := markdownHTML(in, 0); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", in, got, want)
		}
	}
	if got := markdownHTML("# A", 2); got != "<h3>A</h3>\n" {
		t.Errorf("two levels down: got %s", got)
	}
}

func TestPlain(t *testing.T) {
	head := func(s string) string { return "=" + s + "=" }
	in := "# A **b** *c* `*d*` e*f\n\none two three `four five` six\nseven\n- item one two three\n  four\n```\n  x\n```\n| a | long |\n|---|---|\n| 1 | |\n| 22 | y |\n[f](g)"
	want := "=A b c `*d*` e*f=\n\none two three\n`four five` six\nseven\n- item one two three\n  four\n  x\n  a   long\n  --  ----\n  1\n  22  y\nf (g)"
	if got := strings.Join(Plain(in, 20, head), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// sample is a notebook with everything that a page shows.
const sample = `# %% [markdown]
# # T <1>
# %% A "title"
x = "</pre><script>"
# %load <x>
# %% tags=["exercise"]
try_it()
# %% tags=["solution"]
done()
`

func TestWritePage(t *testing.T) {
	n, err := Parse("f", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	r := Rendered{Notebook: n, ID: "one", Outputs: []Output{{}, {Line: 7, Text: "out <1>\n", Pictures: []string{"<svg></svg>"}},
		{Line: 8, Text: "bad", Failed: true}, {Line: 9}}}
	var b bytes.Buffer
	if err := WritePage(&b, "All & more", []Rendered{r, r}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"<title>All &amp; more</title>", "<h1>T &lt;1&gt;</h1>", `<p class="nb-title">A &#34;title&#34;</p>`,
		`data-n="7">x = <span class="nb-s">&#34;&lt;/pre&gt;&lt;script&gt;&#34;</span>`, `nb-command" data-n="">load &lt;x&gt;`,
		"<figure><svg></svg></figure>", "<summary>as text</summary><pre class=\"nb-out\">out &lt;1&gt;</pre>",
		`<pre class="nb-out nb-failed">bad</pre>`, `<summary>Solution</summary>`, `<a href="#one">T &lt;1&gt;</a>`,
		"Lesson 2",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, never := range []string{"<script", "http:", "https:", "url(", "@import", " src=", "<link"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %s", never)
		}
	}
	// Every element that is opened is closed, in order.
	dec := xml.NewDecoder(strings.NewReader(page))
	dec.Strict = false
	dec.AutoClose = []string{"meta"}
	dec.Entity = xml.HTMLEntity
	for {
		if _, err := dec.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
