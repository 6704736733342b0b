package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// progressAfter is how long something may take before a line tells about it.
const progressAfter = time.Second

// progress shows on one line of a terminal what is being done and for how long,
// once that is over a second. On anything but a terminal it shows nothing. A nil
// progress is silent too.
type progress struct {
	w     io.Writer
	after time.Duration
	every time.Duration
	mu    sync.Mutex
	what  string
	part  string
	from  time.Time
	stop  chan struct{}
	done  chan struct{}
}

// newProgress starts a progress line on w, or returns nil if w is no terminal.
func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return startProgress(w, progressAfter, 200*time.Millisecond)
}

// startProgress draws on w, which takes carriage returns, every so often what
// has been going on for longer than after.
func startProgress(w io.Writer, after, every time.Duration) *progress {
	p := &progress{w: w, after: after, every: every, stop: make(chan struct{}), done: make(chan struct{})}
	go p.draw()
	return p
}

// begin names what is being done from now on; "" is nothing.
func (p *progress) begin(what string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.what, p.part, p.from = what, "", time.Now()
}

// at adds how far it is.
func (p *progress) at(part string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = part
}

// end takes the line away and ends the drawing.
func (p *progress) end() {
	if p == nil {
		return
	}
	close(p.stop)
	<-p.done
}

func (p *progress) draw() {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	defer close(p.done)
	for {
		select {
		case <-p.stop:
			p.begin("")
			return
		case <-tick.C:
			p.mu.Lock()
			if spent := time.Since(p.from); p.what != "" && spent >= p.after {
				fmt.Fprintf(p.w, "\r\x1b[K%s %s%.0f s", p.what, p.part, spent.Seconds())
			}
			p.mu.Unlock()
		}
	}
}

// clear takes away a line that was drawn; p.mu is held.
func (p *progress) clear() {
	if p.what != "" && time.Since(p.from) >= p.after {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
