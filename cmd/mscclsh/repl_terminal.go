package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chzyer/readline"
)

// terminal is a shell with somebody in front of it. One goroutine reads and carries
// out lines; another looks after the file that is loaded when it is saved, and
// speaks only while the first one waits for a key.
type terminal struct {
	shell *Shell
	keys  *keyFilter
	rl    *readline.Instance
	out   *os.File
	dumb  bool // the terminal knows no sequences

	busy sync.Mutex // held unless a line is being waited for

	typed sync.Mutex
	blank bool // the line is an indentation, with the cursor at its end
	ended bool // by Ctrl-D
}

// The most candidates that are listed, and the widest and narrowest output.
const (
	maxCandidates = 60
	widest        = 200
	narrowest     = 40
)

// watchEvery is how often the file of autoload is looked at.
const watchEvery = 300 * time.Millisecond

// atTerminal reads lines that somebody types.
func (s *Session) atTerminal(ctx context.Context, sh *Shell, in, out *os.File, args []string) error {
	if s.release != nil {
		s.release()
	}
	s.told = true
	t := &terminal{shell: sh, keys: newKeyFilter(in), out: out, dumb: os.Getenv("TERM") == "dumb"}
	sh.Typed()
	sh.ascii = !utf8Locale()
	t.keys.ascii = sh.ascii
	rl, err := readline.NewEx(&readline.Config{
		Stdin: t.keys, Stdout: out, Stderr: os.Stderr, Painter: t.keys, AutoComplete: t,
		HistoryFile: historyFile(), HistoryLimit: 2000, DisableAutoSaveHistory: true, HistorySearchFold: true,
		InterruptPrompt: "^C", EOFPrompt: "", Listener: t, FuncFilterInputRune: t.filter,
	})
	if err != nil {
		return cannot("setting up the terminal: %w", err)
	}
	t.rl = rl
	t.busy.Lock()
	stop := make(chan struct{})
	defer close(stop)
	go t.watch(ctx, stop)
	// readline's own Close can wait for ever for a reader: the terminal is restored
	// after every line, and the process ends.
	fmt.Fprintf(out, "mscclsh %s: help lists what can be typed, Ctrl-D ends\n", version)
	if len(args) > 0 {
		t.carryOut(ctx, func(ctx context.Context) error { return sh.start(ctx, args) })
	}
	if sh.guide != nil {
		t.carryOut(ctx, sh.guide.next)
	}
	t.loop(ctx)
	return nil
}

// loop reads and carries out lines until they end.
func (t *terminal) loop(ctx context.Context) {
	s := t.shell
	var statement []string // the lines of the one that is being typed
	for !s.Quit() {
		line, err := t.read()
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			s.Forget()
			statement = nil
			continue
		case errors.Is(err, io.EOF):
			t.carryOut(ctx, s.End)
			return
		case err != nil:
			fmt.Fprintln(os.Stderr, "mscclsh: reading the terminal:", err)
			return
		}
		text := t.keys.unfold(line)
		statement = append(statement, text)
		t.carryOut(ctx, func(ctx context.Context) error {
			if strings.Contains(text, "\n") {
				return s.Exec(ctx, text)
			}
			return s.Line(ctx, text)
		})
		if !s.Pending() {
			t.remember(strings.TrimRight(strings.Join(statement, "\n"), " \n"))
			statement = nil
		}
	}
}

// remember puts a whole statement into the history as one line.
func (t *terminal) remember(text string) {
	const most = 4000 // longer ones would fill the screen when they are called back
	if strings.TrimSpace(text) != "" && len(text) <= most {
		_ = t.rl.SaveHistory(foldLine(text)) // without a history file there is none to lose
	}
}

// read waits for a line.
func (t *terminal) read() (string, error) {
	s := t.shell
	t.rl.SetPrompt(s.outStyle.label.Render(s.Prompt()))
	if !t.dumb {
		fmt.Fprint(t.out, "\x1b[?2004h")
		defer fmt.Fprint(t.out, "\x1b[?2004l")
	}
	indent := s.Indent()
	if t.dumb { // a paste comes line by line, with indentation of its own
		indent = ""
	}
	t.typed.Lock()
	t.blank, t.ended = indent != "", false
	t.typed.Unlock()
	t.busy.Unlock()
	defer t.busy.Lock()
	line, err := t.rl.ReadlineWithDefault(indent)
	t.typed.Lock()
	defer t.typed.Unlock()
	if err == nil && t.ended {
		err = io.EOF
	}
	return line, err
}

// OnChange hears of the line after every key, for readline.
func (t *terminal) OnChange(line []rune, pos int, key rune) ([]rune, int, bool) {
	if key != 0 { // 0 is the beginning, of which read knows more
		t.typed.Lock()
		t.blank = pos == len(line) && pos > 0 && strings.TrimSpace(string(line)) == ""
		t.typed.Unlock()
	}
	return line, pos, false
}

// filter hears of a key before readline does. Ctrl-D ends the session where nothing
// stands but an indentation, which nobody typed; readline has it delete instead.
func (t *terminal) filter(key rune) (rune, bool) {
	t.typed.Lock()
	defer t.typed.Unlock()
	if key == readline.CharDelete && t.blank && t.rl.Operation.IsNormalMode() {
		t.ended = true
		return readline.CharEnter, true
	}
	return key, true
}

// carryOut does something that Ctrl-C ends. When it doesn't end, a third Ctrl-C
// ends the process.
func (t *terminal) carryOut(ctx context.Context, do func(context.Context) error) {
	s := t.shell
	s.width = min(max(readline.GetScreenWidth(), narrowest), widest)
	out, errw := &wrapper{w: s.out, width: s.width}, &wrapper{w: s.err, width: s.width}
	s.out, s.err = out, errw
	defer func() {
		out.Flush()
		errw.Flush()
		s.out, s.err = out.w, errw.w
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys := make(chan os.Signal, 3)
	signal.Notify(keys, os.Interrupt)
	defer signal.Stop(keys)
	go func() {
		for n := 1; ; n++ {
			select {
			case <-keys:
				cancel()
				if n == 2 {
					fmt.Fprintln(os.Stderr, "ending what runs; Ctrl-C once more ends mscclsh")
				}
				if n > 2 {
					os.Exit(exitInterrupted)
				}
			case <-ctx.Done():
				if n == 1 { // it came to its end
					return
				}
				select {
				case k := <-keys:
					keys <- k
				case <-time.After(patience):
					return
				}
			}
		}
	}()
	_ = do(ctx) // told already
	s.progress.begin("")
}

// watch tells of the watched file while a line is being waited for.
func (t *terminal) watch(ctx context.Context, stop <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(ends)
	for {
		select {
		case <-stop:
			return
		case <-ends: // leave the terminal as it was
			_ = t.rl.Terminal.ExitRawMode()
			if !t.dumb {
				fmt.Fprint(t.out, "\x1b[?2004l\r\n")
			}
			os.Exit(exitInterrupted)
		case <-tick.C:
		}
		t.busy.Lock()
		t.reload(ctx)
		t.busy.Unlock()
	}
}

// reload loads the watched file if it was saved, and draws the prompt anew.
func (t *terminal) reload(ctx context.Context) {
	s := t.shell
	if s.watch == nil {
		return
	}
	var said bytes.Buffer
	out, errw := s.out, s.err
	s.out, s.err = &said, &said
	err := s.guarded(func() error { return s.poll(ctx) })
	s.tell(ctx, err)
	s.out, s.err = out, errw
	if said.Len() > 0 {
		_, _ = t.rl.Stdout().Write(said.Bytes()) // the prompt is drawn below it
		t.rl.SetPrompt(s.outStyle.label.Render(s.Prompt()))
		t.rl.Refresh()
	}
}

// Do completes the word before the cursor, for readline: what may follow it. At the
// start of a line a tab indents.
func (t *terminal) Do(line []rune, pos int) ([][]rune, int) {
	before := t.keys.unfold(string(line[:pos]))
	before = before[strings.LastIndexByte(before, '\n')+1:]
	if strings.TrimSpace(before) == "" && t.shell.split.pending() {
		return [][]rune{[]rune("    ")}, 0
	}
	t.busy.Lock()
	defer t.busy.Unlock()
	word, list := t.shell.Complete(before)
	if len(list) == 0 {
		return nil, 0
	}
	same := list[0]
	for _, c := range list {
		same = same[:commonPrefix(same, c)]
	}
	if len(same) > len(word) {
		return [][]rune{[]rune(same[len(word):])}, len([]rune(word))
	}
	var out [][]rune
	for i, c := range list {
		if i == maxCandidates {
			out = append(out, []rune(fmt.Sprintf(" … %d more", len(list)-i)))
			break
		}
		out = append(out, []rune(c[len(word):]))
	}
	return out, len([]rune(word))
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// historyFile is where lines are kept from session to session: the file that the
// user names, or one where programs keep such things. "" is none.
func historyFile() string {
	path, set := os.LookupEnv("MSCCLSH_HISTORY")
	if !set {
		state := os.Getenv("XDG_STATE_HOME")
		if state == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return ""
			}
			state = filepath.Join(home, ".local", "state")
		}
		path = filepath.Join(state, "mscclsh", "history")
	}
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return ""
	}
	// What is typed is nobody else's business: readline would let others read it.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return ""
	}
	st, err := f.Stat()
	_ = f.Close() // nothing was written
	if err != nil || !st.Mode().IsRegular() {
		return "" // readline would read a device to its end, and put a file in its place
	}
	return path
}

// utf8Locale reports whether the terminal shows more than ASCII.
func utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := os.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
