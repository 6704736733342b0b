package lsp

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mscclsh/mscclsh/starlib"
)

// fileOf is the file that a URI names: a path, a script of the library, or, of a
// document that is no file, the URI itself.
func (s *server) fileOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return uri
	}
	p := u.Path
	if runtime.GOOS == "windows" { // /C:/x
		p = strings.TrimPrefix(p, "/")
	}
	p = filepath.Clean(filepath.FromSlash(p))
	if dir := s.o.LibraryDir; dir != "" {
		if rel, err := filepath.Rel(dir, p); err == nil && filepath.IsLocal(rel) && rel != "." {
			return starlib.LibraryPrefix + filepath.ToSlash(rel)
		}
	}
	return p
}

// uriOf is the reverse of fileOf. A client's own spelling is kept for what it has
// open; a script of the library is written to disk first. It is "" where that fails.
func (s *server) uriOf(file string) string {
	s.mu.Lock()
	for _, d := range s.docs {
		if d.name == file {
			s.mu.Unlock()
			return d.uri
		}
	}
	s.mu.Unlock()
	if name, ok := strings.CutPrefix(file, starlib.LibraryPrefix); ok {
		if err := s.writeLibrary(); err != nil {
			return ""
		}
		file = filepath.Join(s.o.LibraryDir, filepath.FromSlash(name))
	}
	if strings.Contains(file, "://") {
		return file
	}
	p := filepath.ToSlash(file)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return (&url.URL{Scheme: "file", Path: p}).String()
}

// writeLibrary makes files of the library's scripts, which no editor could open
// otherwise. They are for reading: a change in them changes nothing.
func (s *server) writeLibrary() error {
	s.shipped.Do(func() {
		if s.shippedErr = s.writeScripts(); s.shippedErr != nil {
			s.log.Printf("writing the library: %s", s.shippedErr)
		}
	})
	return s.shippedErr
}

func (s *server) writeScripts() error {
	if s.o.Library == nil || s.o.LibraryDir == "" {
		return errors.New("there is no library here")
	}
	if err := os.MkdirAll(s.o.LibraryDir, 0o755); err != nil {
		return fmt.Errorf("making its folder: %w", err)
	}
	names, err := fs.Glob(s.o.Library, "*.star")
	if err != nil {
		return fmt.Errorf("listing it: %w", err)
	}
	for _, name := range names {
		want, err := fs.ReadFile(s.o.Library, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		file := filepath.Join(s.o.LibraryDir, name)
		if have, err := os.ReadFile(file); err == nil && string(have) == string(want) {
			continue
		}
		// Two servers may do this at once: each file appears whole.
		tmp, err := os.CreateTemp(s.o.LibraryDir, ".new-*")
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		_, err = tmp.Write(want)
		err = errors.Join(err, tmp.Chmod(0o444), tmp.Close())
		if err == nil {
			err = os.Rename(tmp.Name(), file)
		}
		if err != nil {
			_ = os.Remove(tmp.Name()) // the error that counts is the first one
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// read gives the text of a script: as the client has it open, else from the library
// or from disk.
func (s *server) read(file string) ([]byte, error) {
	s.mu.Lock()
	for _, d := range s.docs {
		if d.name == file {
			s.mu.Unlock()
			return []byte(d.text.s), nil
		}
	}
	s.mu.Unlock()
	if name, ok := strings.CutPrefix(file, starlib.LibraryPrefix); ok {
		if s.o.Library == nil {
			return nil, errors.New("there is no library here")
		}
		return fs.ReadFile(s.o.Library, path.Clean(name))
	}
	if s.o.ReadFile != nil {
		return s.o.ReadFile(file)
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // a pipe could keep the reader for ever
		return nil, errors.New("it is no regular file")
	case info.Size() > maxDocument:
		return nil, fmt.Errorf("the file has more than %d bytes", maxDocument)
	}
	return os.ReadFile(file)
}

// shippedNames are the library's scripts, sorted.
func (s *server) shippedNames() []string {
	if s.o.Library == nil {
		return nil
	}
	names, err := fs.Glob(s.o.Library, "*.star")
	if err != nil {
		return nil
	}
	return names
}
