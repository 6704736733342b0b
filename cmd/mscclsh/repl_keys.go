package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// What a line that is being edited holds in place of a new line and a tab: the
// editor knows lines only, and takes a tab for a question. Characters that no
// script has, shown as something that one can read.
const (
	lineBreak      = '\uf10a'
	tabMark        = '\uf109'
	lineBreakShown = '⏎'
	tabMarkShown   = '⇥'
)

// pasteInLine is the longest paste that is put into the line, in characters. Of a
// longer one there is a word in the line, because the editor draws the line once
// more for every character.
const pasteInLine = 600

// keyFilter stands between the terminal and the line editor. It translates keys
// that the editor doesn't know, and takes what is pasted as a whole.
type keyFilter struct {
	in    io.ReadCloser
	ascii bool // the terminal shows no other characters

	mu     sync.Mutex
	pastes []string // the long ones

	raw     []byte // read, and not translated yet
	out     []byte // translated, and not handed out yet
	pasting bool
	paste   []byte
	buf     [4096]byte
}

func newKeyFilter(in io.ReadCloser) *keyFilter { return &keyFilter{in: in} }

func (k *keyFilter) Close() error { return k.in.Close() }

// Read hands out translated input.
func (k *keyFilter) Read(p []byte) (int, error) {
	for len(k.out) == 0 {
		n, err := k.in.Read(k.buf[:])
		k.raw = append(k.raw, k.buf[:n]...)
		k.translate()
		if err != nil && len(k.out) == 0 {
			if len(k.raw) > 0 { // the beginning of a sequence that ends here
				k.out, k.raw = append(k.out, k.raw...), nil
				break
			}
			return 0, err
		}
	}
	n := copy(p, k.out)
	k.out = k.out[n:]
	return n, nil
}

// Sequences of a terminal that frame a paste.
const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// keySequences are what the editor doesn't know, and what it does.
var keySequences = [...][2]string{
	{"\x1b[1~", "\x1b[H"}, {"\x1b[7~", "\x1b[H"}, // Home of tmux, screen and the console; of rxvt
	{"\x1b[4~", "\x1b[F"}, {"\x1b[8~", "\x1b[F"}, // End
	{"\x1b[1;5D", "\x1bb"}, {"\x1b[1;5C", "\x1bf"}, // a word to the left, to the right
	{"\x1b[1;3D", "\x1bb"}, {"\x1b[1;3C", "\x1bf"},
	{"\x1b[3;5~", "\x1bd"},                            // delete a word
	{"\x1b[5~", ""}, {"\x1b[6~", ""}, {"\x1b[2~", ""}, // pages and Insert: nothing
}

// translate takes from raw what is whole. The beginning of a sequence waits for the
// rest of it.
func (k *keyFilter) translate() {
	for len(k.raw) > 0 {
		if k.pasting {
			end := bytes.Index(k.raw, []byte(pasteEnds))
			if end < 0 {
				keep := begins(k.raw, pasteEnds)
				k.paste = append(k.paste, k.raw[:len(k.raw)-keep]...)
				k.raw = append([]byte(nil), k.raw[len(k.raw)-keep:]...)
				return
			}
			k.paste = append(k.paste, k.raw[:end]...)
			k.raw = k.raw[end+len(pasteEnds):]
			k.pasting = false
			k.out = append(k.out, k.fold(string(k.paste))...)
			k.paste = nil
			continue
		}
		if k.raw[0] != '\x1b' {
			k.out = append(k.out, k.raw[0])
			k.raw = k.raw[1:]
			continue
		}
		if bytes.HasPrefix(k.raw, []byte(pasteBegins)) {
			k.pasting, k.raw = true, k.raw[len(pasteBegins):]
			continue
		}
		waits := strings.HasPrefix(pasteBegins, string(k.raw)) // a lone Escape too: the editor waits for what follows it as well
		found := false
		for _, s := range keySequences {
			if bytes.HasPrefix(k.raw, []byte(s[0])) {
				k.out, k.raw, found = append(k.out, s[1]...), k.raw[len(s[0]):], true
				break
			}
			waits = waits || strings.HasPrefix(s[0], string(k.raw))
		}
		switch {
		case found:
		case waits:
			return
		default:
			k.out, k.raw = append(k.out, k.raw[0]), k.raw[1:]
		}
	}
}

// begins is how many bytes at the end of b may be the beginning of s.
func begins(b []byte, s string) int {
	for n := min(len(s)-1, len(b)); n > 0; n-- {
		if strings.HasPrefix(s, string(b[len(b)-n:])) {
			return n
		}
	}
	return 0
}

// fold makes one line of what was pasted. Line ends at its end are left out: Enter
// is the user's. Other control characters would be commands for the editor.
func (k *keyFilter) fold(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	text = strings.TrimRight(text, "\n")
	text = strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == utf8.RuneError {
			return -1
		}
		return c
	}, text)
	if utf8.RuneCountInString(text) <= pasteInLine {
		return foldLine(text)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pastes = append(k.pastes, text)
	return pasteWord(len(k.pastes), text)
}

// pasteWord stands in the line for the n-th long paste.
func pasteWord(n int, text string) string {
	return fmt.Sprintf("[paste %d of %s]", n, plural(int64(len(textLines(text))), "line"))
}

// foldLine makes one line of several.
func foldLine(text string) string {
	return strings.NewReplacer("\n", string(lineBreak), "\t", string(tabMark)).Replace(text)
}

// unfold is the text that an edited line stands for.
func (k *keyFilter) unfold(line string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, text := range k.pastes {
		line = strings.ReplaceAll(line, pasteWord(i+1, text), text)
	}
	return strings.NewReplacer(string(lineBreak), "\n", string(tabMark), "\t").Replace(line)
}

// Paint shows the marks of a folded line.
func (k *keyFilter) Paint(line []rune, _ int) []rune {
	shown := make([]rune, len(line))
	for i, c := range line {
		switch {
		case c == lineBreak && k.ascii:
			c = '|'
		case c == lineBreak:
			c = lineBreakShown
		case c == tabMark && k.ascii:
			c = ' '
		case c == tabMark:
			c = tabMarkShown
		}
		shown[i] = c
	}
	return shown
}
