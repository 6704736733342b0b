package jupyter

import (
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

// Text of a stream waits so long for more, and no longer than this many bytes: a
// message for every line would keep a frontend busy for long after the cell.
const (
	streamWait = 50 * time.Millisecond
	streamMost = 32 << 10
)

// output is the Output of one cell. It may be written to by several goroutines.
type output struct {
	send func(kind string, content any) // a broadcast

	mu    sync.Mutex
	name  string // of the stream that text is for
	text  []byte
	timer *time.Timer
	ended bool
}

type streamContent struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type displayContent struct {
	Data      map[string]string `json:"data"`
	Metadata  struct{}          `json:"metadata"`
	Transient struct{}          `json:"transient"`
}

func (o *output) Stdout() io.Writer { return &streamWriter{o, "stdout"} }
func (o *output) Stderr() io.Writer { return &streamWriter{o, "stderr"} }

func (o *output) Display(data map[string]string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(true)
	if !o.ended {
		o.send("display_data", displayContent{Data: data})
	}
}

// end sends what is left. What a goroutine still writes afterwards is lost: the
// cell that it belonged to is over.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush(true)
	o.ended = true
}

// flush sends the text that waits; o.mu is held. Unless it is all, the beginning of
// a character whose rest is to come stays.
func (o *output) flush(all bool) {
	if o.timer != nil {
		o.timer.Stop()
		o.timer = nil
	}
	n := len(o.text)
	if !all {
		n = wholeRunes(o.text)
	}
	if n == 0 || o.ended {
		return
	}
	o.send("stream", streamContent{o.name, string(o.text[:n])})
	o.text = append([]byte(nil), o.text[n:]...)
}

// wholeRunes is how many bytes of a text are before a character that is cut off.
func wholeRunes(text []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if at := len(text) - back; utf8.RuneStart(text[at]) {
			if utf8.FullRune(text[at:]) {
				break
			}
			return at
		}
	}
	return len(text)
}

type streamWriter struct {
	out  *output
	name string
}

func (w *streamWriter) Write(p []byte) (int, error) {
	o := w.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.name != w.name {
		o.flush(true)
		o.name = w.name
	}
	o.text = append(o.text, p...)
	switch {
	case len(o.text) >= streamMost:
		o.flush(false)
	case o.timer == nil && len(o.text) > 0:
		o.timer = time.AfterFunc(streamWait, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.flush(false)
		})
	}
	return len(p), nil
}

// silent is the Output of a cell that nobody is to hear of.
type silent struct{}

func (silent) Stdout() io.Writer         { return io.Discard }
func (silent) Stderr() io.Writer         { return io.Discard }
func (silent) Display(map[string]string) {}
