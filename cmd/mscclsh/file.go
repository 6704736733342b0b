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
func writeFile(path string, write func(io.Writer) error) (err error) {
	old, statErr := os.Stat(path)
	if statErr == nil && !old.Mode().IsRegular() {
		if old.IsDir() {
			return badCall("output", "writing %s: it is a directory", path)
		}
		return writeTo(path, write)
	}
	if real, linkErr := filepath.EvalSymlinks(path); linkErr == nil {
		path = real // a link stays a link
	}
	name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.tmp", filepath.Base(path), os.Getpid()))
	// Not os.CreateTemp: the file is to have the mode that the user's umask says.
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return createError(path, err)
	}
	defer func() {
		if err != nil {
			// The file is closed twice after some errors; the second is no news.
			_ = f.Close()
			_ = os.Remove(name)
		}
	}()
	buf := bufio.NewWriterSize(f, 1<<20)
	if err := write(buf); err != nil {
		return err
	}
	if statErr == nil { // who may read it stays as it was
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return cannot("writing %s: %w", path, err)
		}
	}
	if err := errors.Join(buf.Flush(), f.Close()); err != nil {
		return cannot("writing %s: %w", path, err)
	}
	if err := os.Rename(name, path); err != nil {
		return cannot("writing %s: %w", path, err)
	}
	return nil
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
	buf := bufio.NewWriterSize(f, 1<<20)
	err = write(buf)
	if flushErr := errors.Join(buf.Flush(), f.Close()); err == nil && flushErr != nil {
		err = cannot("writing %s: %w", path, flushErr)
	}
	return err
}

// createError says why the output can't be made: a wrong name is the caller's.
func createError(path string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return badCall("output", "writing %s: %v", path, err)
	}
	return cannot("writing %s: %w", path, err)
}
