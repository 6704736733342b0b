package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// version is set by the Makefile.
var version = "development"

// patience is how long an interrupted command may take to say where it was.
const patience = 5 * time.Second

func main() {
	delayCollection()
	os.Exit(run(os.Args[1:]))
}

// run is the command without the end of the process.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second Ctrl-C ends the process at once, whatever it is doing; so does time,
	// where something can't be interrupted.
	finished := make(chan struct{})
	defer close(finished)
	keep := context.AfterFunc(ctx, func() {
		stop()
		select {
		case <-finished:
		case <-time.After(patience):
			os.Exit(exitInterrupted)
		}
	})

	s := NewSession(os.Stdout, os.Stderr)
	defer s.Close()
	s.release = func() { // the shell deals with Ctrl-C itself
		keep()
		stop()
	}
	if len(args) == 0 {
		args = []string{"shell"}
	}
	return exitCode(s.Exec(ctx, args))
}

// Exec carries out one command line, without the program's name, and says what
// is wrong with it.
func (s *Session) Exec(ctx context.Context, args []string) error {
	root := newRoot(s)
	root.SetArgs(args)
	err := s.guard(func() error { return root.ExecuteContext(ctx) })
	if err != nil && !s.told {
		writeMessages(s.Err, s.errStyle, diag.Messages(err))
	}
	return err
}

// versionText is the version and what it was built with.
func versionText() string {
	return fmt.Sprintf("mscclsh %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
