package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// maxInput is the longest file that is read, in bytes.
const maxInput = 512 << 20

// readInput reads a file. Opening and reading can block for ever on what is no
// regular file, so Ctrl-C ends the waiting, not the reading.
func readInput(ctx context.Context, file string) ([]byte, error) {
	var data []byte
	err := interruptible(ctx, func() (err error) {
		data, err = readWhole(file)
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

func readWhole(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, readError(file, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	switch {
	case err != nil:
		return nil, readError(file, err)
	case len(data) > maxInput:
		return nil, diag.Errorf(diag.Pos{File: file}, "too-large", "the file has more than %s", formatSize(maxInput))
	}
	return data, nil
}

// readError says why an input can't be read.
func readError(path string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return badCall("no-file", "%s: no such file", path)
	}
	return badCall("no-file", "reading %s: %s", path, fmt.Sprint(err))
}

// interruptible runs do, which may block where nothing can end it, and returns
// early when ctx is done; do then goes on behind the scenes until the process ends.
func interruptible(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
