package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile lets write fill a file that appears under its name only when it is
// whole: it is written beside it and renamed. What isn't a regular file, such as
// /dev/null, is written directly.
func writeFile(path string, write func(io.Writer) error) error {
	old, statErr := os.Stat(path)
	if statErr == nil && !old.Mode().IsRegular() {
		if old.IsDir() {
			return badCall("output", "writing %s: it is a directory", path)
		}
		return writeTo(path, write)
	}
	made, err := writeBeside(path, write)
	if err != nil {
		return err
	}
	return made.appear()
}

// beside is a file that was written under a name of its own, until it appears under the
// one that it is to have.
type beside struct {
	path string // as the caller says it
	real string // the same, or what it is a link to, which stays one
	name string // where it is
}

// appear gives the file its name.
func (b *beside) appear() error {
	if err := os.Rename(b.name, b.real); err != nil {
		b.remove()
		return cannot("writing %s: %w", b.path, bare(err))
	}
	return nil
}

func (b *beside) remove() { _ = os.Remove(b.name) } // whatever led here says more

// writeBeside lets write fill a file that is to be at path, which is none yet or a regular one.
func writeBeside(path string, write func(io.Writer) error) (_ *beside, err error) {
	b := &beside{path: path, real: path}
	if real, linkErr := filepath.EvalSymlinks(path); linkErr == nil {
		b.real = real
	}
	b.name = filepath.Join(filepath.Dir(b.real), fmt.Sprintf(".%s.%d.tmp", filepath.Base(b.real), os.Getpid()))
	// Not os.CreateTemp: the file is to have the mode that the user's umask says.
	f, err := os.OpenFile(b.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, createError(path, err)
	}
	defer func() {
		if err != nil {
			// The file is closed twice after some errors; the second is no news.
			_ = f.Close()
			b.remove()
		}
	}()
	if err := fill(f, path, write); err != nil {
		return nil, err
	}
	if old, statErr := os.Stat(path); statErr == nil { // who may read it stays as it was
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return nil, cannot("writing %s: %w", path, bare(err))
		}
	}
	if err := f.Close(); err != nil {
		return nil, cannot("writing %s: %w", path, bare(err))
	}
	return b, nil
}

// fill lets write fill an open file. What the file itself refuses, a full disk, say, is the
// machine's error, and named as the caller names the file.
func fill(f *os.File, path string, write func(io.Writer) error) error {
	buf := bufio.NewWriterSize(f, 1<<20)
	err := write(buf)
	if refused := buf.Flush(); refused != nil { // a buffer keeps the first error of its file
		return cannot("writing %s: %w", path, bare(refused))
	}
	return err
}

// bare is an error without the names of the files that it is about.
func bare(err error) error {
	var onPath *fs.PathError
	var onLink *os.LinkError
	switch {
	case errors.As(err, &onPath):
		return onPath.Err
	case errors.As(err, &onLink):
		return onLink.Err
	}
	return err
}

// overwrites reports whether two names are of one regular file.
func overwrites(out, in string) bool {
	a, err := os.Stat(out)
	if err != nil || !a.Mode().IsRegular() {
		return false
	}
	b, err := os.Stat(in)
	return err == nil && os.SameFile(a, b)
}

func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return createError(path, err)
	}
	err = fill(f, path, write)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = cannot("writing %s: %w", path, bare(closeErr))
	}
	return err
}

// createError says why the output can't be made: a wrong name is the caller's.
func createError(path string, err error) error {
	err = bare(err)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return badCall("output", "writing %s: %v", path, err)
	}
	return cannot("writing %s: %w", path, err)
}
