package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestTerminal types into the shell in a real terminal, tmux's, and compares what is
// on its screen. Files are testdata/repl/terminal/*.txtar; their comment holds a line
// for each thing to do:
//
//	start WIDTH HEIGHT TERM [NAME=VALUE ...] [-- ARGS]
//	type TEXT      each character by itself
//	key NAME ...   tmux's names: Enter, Home, C-c
//	paste FILE     as a terminal pastes, framed if the shell asked for that
//	wait REGEXP    for the last line on the screen that isn't empty
//	screen FILE    what is on the screen
//	colors FILE    the same, with the sequences for colors
//	save NAME [FILE]  writes a file of the archive where the shell runs
//	sleep SECONDS  for what leaves the last line as it was
//	has FILE REGEXP
func TestTerminal(t *testing.T) {
	tmux := installed(t, "MSCCLSH_TERMINAL", "terminal", "runs the shell in tmux")
	bin := filepath.Join(t.TempDir(), "mscclsh")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the command: %v\n%s", err, out)
	}
	files, err := filepath.Glob("testdata/repl/terminal/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := &pane{t: t, tmux: tmux, bin: bin, dir: t.TempDir(), archive: a}
			defer p.stop()
			for i, line := range strings.Split(string(a.Comment), "\n") {
				if line != "" && line[0] != '#' {
					p.at = fmt.Sprintf("%s:%d", file, i+1)
					p.do(line)
				}
			}
			if *update && p.changed {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// pane is a terminal with the shell in it.
type pane struct {
	t                      *testing.T
	tmux, bin, dir, socket string
	archive                *txtar.Archive
	at                     string // the line of the transcript
	starts                 int
	changed                bool
}

func (p *pane) run(args ...string) string {
	p.t.Helper()
	cmd := exec.Command(p.tmux, append([]string{"-L", p.socket, "-u", "-f", "/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%s: tmux %q: %v\n%s", p.at, args, err, out)
	}
	return string(out)
}

func (p *pane) stop() {
	if p.socket == "" {
		return
	}
	_ = exec.Command(p.tmux, "-L", p.socket, "kill-server").Run() // gone already, perhaps
}

func (p *pane) do(line string) {
	p.t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "start":
		p.start(rest)
	case "type":
		p.run("send-keys", "-l", "--", rest)
		p.echoed(rest)
	case "key":
		p.run(append([]string{"send-keys"}, strings.Fields(rest)...)...)
	case "paste":
		p.run("set-buffer", "--", string(p.file(rest).Data))
		p.run("paste-buffer", "-p")
		if lines := textLines(strings.TrimSpace(string(p.file(rest).Data))); len(lines) > 50 {
			p.echoed(fmt.Sprintf("of %d lines]", len(lines)))
		} else {
			p.echoed(lines[len(lines)-1])
		}
	case "wait":
		p.wait(regexp.MustCompile(rest))
	case "screen":
		p.compare(rest, p.screen())
	case "colors":
		p.compare(rest, strings.ReplaceAll(p.screen("-e"), "\x1b", "^["))
	case "save":
		name, from, ok := strings.Cut(rest, " ")
		if !ok {
			from = name
		}
		if err := os.WriteFile(filepath.Join(p.dir, name), p.file(from).Data, 0o644); err != nil {
			p.t.Fatal(err)
		}
	case "sleep":
		d, err := time.ParseDuration(rest + "s")
		if err != nil {
			p.t.Fatalf("%s: %v", p.at, err)
		}
		time.Sleep(d)
	case "has":
		name, want, _ := strings.Cut(rest, " ")
		data, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil || !regexp.MustCompile(want).Match(data) {
			p.t.Errorf("%s: %s has %q, %v", p.at, name, data, err)
		}
	default:
		p.t.Fatalf("%s: what is %q?", p.at, word)
	}
}

// start runs the shell in a new terminal.
func (p *pane) start(rest string) {
	p.t.Helper()
	words, args, _ := strings.Cut(rest, " -- ")
	w := strings.Fields(words)
	p.stop()
	p.starts++
	p.socket = fmt.Sprintf("mscclsh-test-%d-%s-%d", os.Getpid(), strings.TrimPrefix(p.t.Name(), "TestTerminal/"), p.starts)
	// What says of colors where the tests run must not say it here: as CI does, which
	// the terminal's library takes for the word that nobody looks.
	env := "-u CI -u NO_COLOR -u CLICOLOR -u CLICOLOR_FORCE -u COLORTERM HOME=" + p.dir + " XDG_STATE_HOME=" + p.dir + " LC_ALL=C.UTF-8 TERM=" + w[2] + " " + strings.Join(w[3:], " ")
	p.run("new-session", "-d", "-x", w[0], "-y", w[1], "-c", p.dir,
		"env "+env+" "+p.bin+" "+args+"; echo \"it ended with $?\"; exec sleep 600")
}

// echoed waits until what was typed stands on the screen: the prompt that is waited
// for later must not be the one before it.
func (p *pane) echoed(text string) {
	p.t.Helper()
	text = strings.TrimSpace(text)
	text = text[max(0, len(text)-20):]
	for end := time.Now().Add(time.Minute); !strings.Contains(strings.ReplaceAll(p.screen(), "\n", ""), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s: %q was typed and doesn't stand on the screen\n%s", p.at, text, p.screen())
		}
	}
}

// screen is what the terminal shows, without empty lines at its end.
func (p *pane) screen(flags ...string) string {
	p.t.Helper()
	var lines []string
	for _, line := range strings.Split(p.run(append([]string{"capture-pane", "-p"}, flags...)...), "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// wait waits until the last line is what is expected.
func (p *pane) wait(want *regexp.Regexp) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		lines := strings.Split(strings.TrimSuffix(p.screen(), "\n"), "\n")
		if want.MatchString(lines[len(lines)-1]) {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: %s never came; the screen is\n%s", p.at, want, p.screen())
		}
	}
}

func (p *pane) file(name string) *txtar.File {
	p.t.Helper()
	for i := range p.archive.Files {
		if p.archive.Files[i].Name == name {
			return &p.archive.Files[i]
		}
	}
	if !*update {
		p.t.Fatalf("%s: there is no file %s", p.at, name)
	}
	p.archive.Files = append(p.archive.Files, txtar.File{Name: name})
	return &p.archive.Files[len(p.archive.Files)-1]
}

func (p *pane) compare(name, got string) {
	p.t.Helper()
	f := p.file(name)
	switch {
	case string(f.Data) == got:
	case *update:
		f.Data, p.changed = []byte(got), true
	default:
		p.t.Errorf("%s: the screen is\n%s\nwant\n%s", p.at, got, f.Data)
	}
}
