package runtime

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// rankMark stands for a rank's number in the name of a file per rank.
const rankMark = "{rank}"

// ReadInputs reads the inputs of all ranks. A pattern with {rank} names one file
// a rank, which a rank without input need not have; another names one file whose
// first axis is the ranks. Files ending in .npy must hold type d in C order,
// others are raw little-endian elements. The result is for SizeOf and NewInputs.
func ReadInputs(pattern string, c *ir.Collective, d DType) ([][]byte, error) {
	if err := validCollective(c); err != nil {
		return nil, err
	}
	one, err := NewLayout(c, d, int64(c.NumChunks())*int64(d.Size()))
	if err != nil {
		return nil, err
	}
	n := int(c.Ranks)
	data := make([][]byte, n)
	if strings.Contains(pattern, rankMark) {
		for r := range n {
			name := rankFile(pattern, r)
			b, _, err := readTensor(name, d)
			if errors.Is(err, fs.ErrNotExist) && one.InputElems(ir.Rank(r)) == 0 {
				continue
			}
			if err != nil {
				return nil, fileError(name, err)
			}
			data[r] = b
		}
	} else if data, err = readStacked(pattern, n, d); err != nil {
		return nil, fileError(pattern, err)
	}
	for r := range n {
		if one.InputElems(ir.Rank(r)) == 0 {
			data[r] = nil
		}
	}
	return data, nil
}

func fileError(name string, err error) error {
	return diag.Errorf(diag.Pos{File: name}, "file", "%v", err)
}

func rankFile(pattern string, r int) string {
	return strings.ReplaceAll(pattern, rankMark, strconv.Itoa(r))
}

// readStacked reads one file of n ranks' elements, one after another.
func readStacked(name string, n int, d DType) ([][]byte, error) {
	b, shape, err := readTensor(name, d)
	if err != nil {
		return nil, err
	}
	if shape != nil && (len(shape) == 0 || shape[0] != int64(n)) {
		return nil, fmt.Errorf("the first axis of shape %v must be the %d ranks", shape, n)
	}
	if len(b)%(n*d.Size()) != 0 {
		return nil, fmt.Errorf("%d bytes can't be divided among %d ranks in elements of %d bytes", len(b), n, d.Size())
	}
	data := make([][]byte, n)
	for r := range n {
		data[r] = b[len(b)/n*r:][:len(b)/n]
	}
	return data, nil
}

// readTensor reads a whole file; shape is nil for a raw one.
func readTensor(name string, d DType) (data []byte, shape []int64, err error) {
	// Asked before opening: opening a pipe waits for a writer.
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, errors.Unwrap(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("not a regular file, whose size is known before it is read")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, errors.Unwrap(err)
	}
	defer f.Close()
	size := info.Size()
	if filepath.Ext(name) == ".npy" {
		h, err := readNpyHeader(f, d)
		if err != nil {
			return nil, nil, err
		}
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the .npy data: %w", err)
		}
		want := h.elems * int64(d.Size())
		if size-at != want {
			return nil, nil, fmt.Errorf("shape %v needs %d bytes of data, the file has %d", h.shape, want, size-at)
		}
		size, shape = want, append([]int64{}, h.shape...)
	}
	if size%int64(d.Size()) != 0 {
		return nil, nil, fmt.Errorf("%d bytes are no whole number of %v elements of %d bytes", size, d, d.Size())
	}
	if err := CheckMemory(size, "reading "+name); err != nil {
		return nil, nil, err
	}
	data = Alloc(size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, nil, fmt.Errorf("reading the data: %w", err)
	}
	return data, shape, nil
}

// WriteOutputs writes the outputs of all ranks under the names that ReadInputs
// would read them from. Ranks without output get no file of their own; in one
// file for all, every rank must have the same number of elements. Each file is
// written under a temporary name beside it; only when all are complete do they
// get their names.
func WriteOutputs(pattern string, d DType, outputs [][]byte) (err error) {
	type file struct {
		name  string
		parts [][]byte
		shape []int64
	}
	var files []file
	if strings.Contains(pattern, rankMark) {
		for r, b := range outputs {
			if len(b) > 0 {
				files = append(files, file{rankFile(pattern, r), [][]byte{b}, []int64{int64(len(b) / d.Size())}})
			}
		}
	} else {
		for r, b := range outputs {
			if len(b) != len(outputs[0]) {
				return diag.Errorf(diag.Pos{File: pattern}, "file",
					"outputs of rank 0 (%d bytes) and rank %d (%d bytes) differ in size and can't share a file",
					len(outputs[0]), r, len(b)).Suggest("put %s into the name to write one file a rank", rankMark)
			}
		}
		if len(outputs) == 0 {
			return nil
		}
		files = append(files, file{pattern, outputs, []int64{int64(len(outputs)), int64(len(outputs[0]) / d.Size())}})
	}
	temps := make([]string, 0, len(files))
	defer func() {
		if err != nil {
			for _, t := range temps {
				os.Remove(t)
			}
		}
	}()
	for i := range files {
		if files[i].name, err = destination(files[i].name); err != nil {
			return fileError(files[i].name, err)
		}
	}
	for _, f := range files {
		t, err := writeTemp(f.name, d, f.parts, f.shape)
		if err != nil {
			return fileError(f.name, err)
		}
		temps = append(temps, t)
	}
	for i, f := range files {
		if err := os.Rename(temps[i], f.name); err != nil {
			return fileError(f.name, err)
		}
	}
	return nil
}

// destination follows links, so that a link stays one, and refuses what a
// rename would destroy: devices, pipes, folders.
func destination(name string) (string, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	if err != nil {
		return name, fmt.Errorf("looking at what is there: %w", err)
	}
	if !info.Mode().IsRegular() {
		return name, errors.New("not a regular file; outputs are written whole, under a temporary name, and then renamed")
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return name, fmt.Errorf("following the link: %w", err)
	}
	return real, nil
}

// writeTemp writes one tensor beside name and returns the temporary name.
func writeTemp(name string, d DType, parts [][]byte, shape []int64) (temp string, err error) {
	var head []byte
	if filepath.Ext(name) == ".npy" {
		if head, err = npyPreamble(d, shape...); err != nil {
			return "", err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // without the temporary name
		}
		return "", fmt.Errorf("creating it: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("closing: %w", cerr)
		}
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	for _, b := range append([][]byte{head}, parts...) {
		if _, err := f.Write(b); err != nil {
			return "", fmt.Errorf("writing: %w", err)
		}
	}
	if err := f.Chmod(0o644); err != nil {
		return "", fmt.Errorf("setting permissions: %w", err)
	}
	return f.Name(), nil
}
