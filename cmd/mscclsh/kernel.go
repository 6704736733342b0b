package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mscclsh/mscclsh/internal/jupyter"
)

// kernelSettings are what the flags of kernel alone say.
type kernelSettings struct {
	prefix string
	user   bool
	name   string // "" is mscclsh
	flag   string // one that was given
}

// kernelFlags are those of kernel alone.
func kernelFlags() []toolFlag {
	only := func(name string, set func(*Settings, string) error) func(*Settings, string) error {
		return func(s *Settings, v string) error {
			s.Kernel.flag = name
			return set(s, v)
		}
	}
	return []toolFlag{
		{Name: "user", Help: "kernel: install for this user, in JUPYTER_DATA_DIR or where Jupyter looks otherwise; so it is without --prefix",
			set: only("user", yes(func(s *Settings, v bool) { s.Kernel.user = v }))},
		{Name: "prefix", Arg: "DIR", Help: "kernel: install in DIR/share/jupyter, for the Jupyter of a virtual environment or of a machine",
			set: only("prefix", fileName("prefix", func(s *Settings, v string) { s.Kernel.prefix = v }))},
		{Name: "name", Arg: "NAME", Default: "mscclsh", Help: "kernel: the name that Jupyter knows the kernel by",
			set: only("name", fileName("name", func(s *Settings, v string) { s.Kernel.name = v }))},
	}
}

// onlyOfKernel reports whether no other command has the flag.
func onlyOfKernel(name string) bool {
	return slices.ContainsFunc(kernelFlags(), func(f toolFlag) bool { return f.Name == name })
}

// checkKernel refuses the flags of kernel for what isn't kernel.
func (s *Session) checkKernel() error {
	if f := s.Set.Kernel.flag; f != "" {
		return badCallHint("flag-unused", "mscclsh kernel install has it", "--%s is for kernel", f)
	}
	return nil
}

// kernelEntry is the command's row in the table.
func kernelEntry() command {
	return command{
		Name:  "kernel",
		Args:  "install | uninstall | run FILE",
		Short: "Write programs in Jupyter: make the shell known there as a kernel, or take it away",
		Long: `install writes a kernel spec that starts this mscclsh. Jupyter then offers it for new notebooks, whose cells
take what the shell takes; what commands draw is shown as a picture. Install it again after moving mscclsh.

run is what Jupyter calls, with its connection file. docs/notebooks.md tells more.`,
		Examples: []string{
			"mscclsh kernel install",
			"mscclsh kernel install --prefix /opt/jupyter",
			"mscclsh kernel uninstall",
		},
		Flags:   []string{"user", "prefix", "name"},
		MinArgs: 1,
		MaxArgs: 2,
		Values:  []string{"install", "uninstall", "run"},
		Run:     func(ctx context.Context, s *Session, args []string) error { return s.kernel(ctx, args) },
	}
}

// kernelWriter is how specs that mscclsh wrote are known.
const kernelWriter = "mscclsh"

// kernel carries out the command.
func (s *Session) kernel(ctx context.Context, args []string) error {
	set := &s.Set.Kernel
	switch {
	case args[0] == "run" && set.flag != "":
		return badCall("flag-unused", "--%s is for kernel install and uninstall", set.flag)
	case args[0] == "run" && len(args) < 2:
		return badCallHint("missing-argument", "Jupyter calls it; mscclsh kernel install tells it how", "kernel run: the connection file is missing")
	case args[0] == "run":
		return s.runKernel(ctx, args[1])
	case len(args) > 1:
		return badCall("unexpected-argument", "kernel %s: unexpected argument %q", args[0], args[1])
	case set.user && set.prefix != "":
		return badCall("flag-unused", "--user and --prefix name different places: give one")
	}
	dir, err := s.kernelDir()
	if err != nil {
		return err
	}
	if args[0] == "uninstall" {
		if err := jupyter.Uninstall(dir, kernelWriter); err != nil {
			return kernelError("removing the kernel", err)
		}
		fmt.Fprintf(s.Out, "removed %s\n", dir)
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return cannot("finding out where mscclsh is: %w", err)
	}
	spec := jupyter.NewSpec("mscclsh", "starlark", kernelWriter, self, "kernel", "run", "{connection_file}")
	if set.name != "" {
		spec.DisplayName = set.name
	}
	if err := jupyter.Install(dir, spec); err != nil {
		return kernelError("installing the kernel", err)
	}
	fmt.Fprintf(s.Out, "wrote %s; Jupyter offers it as %s\n", dir, spec.DisplayName)
	return nil
}

// kernelDir is the folder that the flags name.
func (s *Session) kernelDir() (string, error) {
	set := &s.Set.Kernel
	name := set.name
	if name == "" {
		name = "mscclsh"
	}
	data := filepath.Join(set.prefix, "share", "jupyter")
	if set.prefix == "" {
		home, err := os.UserHomeDir()
		if err != nil && os.Getenv("JUPYTER_DATA_DIR") == "" && os.Getenv("XDG_DATA_HOME") == "" {
			return "", badCallHint("no-home", "give --prefix", "kernel: %v", err)
		}
		data = jupyter.DataDir(runtime.GOOS, home, os.Getenv)
	}
	dir, err := jupyter.SpecDir(data, name)
	if err != nil {
		return "", badCall("flag-value", "--name: %v", err)
	}
	return dir, nil
}

// kernelError says whose mistake an error of installing is.
func kernelError(doing string, err error) error {
	switch {
	case errors.Is(err, jupyter.ErrOther):
		return badCallHint("kernel", "choose another one with --name", "%s: %v", doing, err)
	case errors.Is(err, jupyter.ErrNoKernel), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
		return badCall("kernel", "%s: %v", doing, err)
	}
	return cannot("%s: %w", doing, err)
}

// runKernel serves the clients of one kernel until they shut it down. Ctrl-C ends a
// running cell, as it does in the shell.
func (s *Session) runKernel(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return badCall("connection-file", "kernel run: %v", err)
	}
	conn, err := jupyter.ParseConnection(text)
	if err != nil {
		return badCall("connection-file", "kernel run: %s: %v", file, err)
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	defer stop()
	keys := make(chan os.Signal, 1)
	signal.Notify(keys, os.Interrupt)
	defer signal.Stop(keys)
	if s.release != nil {
		s.release() // after the above, so that neither signal finds nobody
	}
	wake := make(chan struct{})
	go forward(ctx, keys, wake)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go watchParent(ctx, os.Getenv("JPY_PARENT_PID"), os.Getppid, cancel)
	err = jupyter.Serve(ctx, conn, jupyter.Options{Engine: newKernelEngine(), Info: kernelInfo(), Log: s.Err, Wake: wake})
	if err != nil {
		return cannot("kernel run: %w", err)
	}
	return nil
}

// forward tells of signals until ctx is done.
func forward(ctx context.Context, keys <-chan os.Signal, wake chan<- struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-keys:
		}
		select {
		case <-ctx.Done():
			return
		case wake <- struct{}{}:
		}
	}
}

// watchParent ends a kernel whose client is no more and couldn't say so. Clients
// that want it name their process.
func watchParent(ctx context.Context, named string, parent func() int, end func()) {
	pid, err := strconv.Atoi(named)
	if err != nil || pid < 2 || parent() != pid {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for parent() == pid {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	end()
}

// kernelInfo is what the kernel says of itself.
func kernelInfo() jupyter.Info {
	return jupyter.Info{
		Implementation: "mscclsh",
		Version:        version,
		Banner:         versionText() + "\nhelp lists what cells take.",
		// Highlighters know Starlark as Python.
		Language: jupyter.Language{Name: "starlark", Version: strings.TrimPrefix(version, "v"), MIME: "text/x-python", Extension: ".star",
			Pygments: "python", Mode: "python"},
		Links: []jupyter.Link{
			{Text: "The language", URL: kernelDocs + "language.md"},
			{Text: "The shell", URL: kernelDocs + "shell.md"},
			{Text: "Notebooks", URL: kernelDocs + "notebooks.md"},
		},
	}
}

// kernelDocs is where the pages of the reference are.
const kernelDocs = "https://github.com/mscclsh/mscclsh/blob/main/docs/"
