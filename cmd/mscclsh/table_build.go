package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mscclsh/mscclsh/table"
)

// tableBuild makes a table of its source and writes it, with a list of its entries.
func (s *Session) tableBuild(ctx context.Context, file string) error {
	if s.Set.File == "" {
		return badCallHint("missing-argument", "give -o FILE, or -o FOLDER/", "table build: it doesn't say where to write the table")
	}
	if !strings.HasSuffix(file, ".star") {
		return badCall("bad-argument", "table build: %s: a source has a name that ends in .star", file)
	}
	to, err := tableTarget(s.Set.File)
	if err != nil {
		return err
	}
	if overwrites(to, file) || overwrites(indexFile(to), file) {
		return badCall("output", "writing %s: that is the source of the table", s.Set.File)
	}
	s.begin("reading " + file)
	data, err := readScript(ctx, file)
	if err != nil {
		return scriptNotFound(file, err)
	}
	t, notes, err := s.makeTable(ctx, source{file, data})
	if err != nil {
		return err
	}
	portable(t, file)
	image, err := t.Encode()
	if err != nil {
		return err
	}
	if _, err := table.Decode(image); err != nil {
		return cannot("internal error: what was written can't be read: %w", err)
	}
	if strings.HasSuffix(s.Set.File, "/") {
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return createError(filepath.Dir(to), err)
		}
	}
	if err := writeTogether([]namedText{{to, image}, {indexFile(to), []byte(tableText(t))}}); err != nil {
		return err
	}
	if !s.Set.Quiet {
		writeMessages(s.Err, s.errStyle, notes)
		fmt.Fprintf(s.Out, "%s: %s, %s, %s\n", to, plural(int64(len(t.Entries)), "entry"),
			plural(int64(len(t.Programs)), "program"), formatSize(int64(len(image))))
	}
	return nil
}

// tableTarget is the file that -o means: of a folder, the table in it.
func tableTarget(name string) (string, error) {
	if name == "-" {
		return "", badCall("output", "-o -: a table is a file for a program to map, give it a name")
	}
	if info, err := os.Stat(name); strings.HasSuffix(name, "/") || err == nil && info.IsDir() {
		return filepath.Join(name, tableFile), nil
	}
	if ext := strings.ToLower(filepath.Ext(name)); ext == ".star" || ext == ".txt" {
		return "", badCallHint("output", "give a name such as "+tableFile, "-o %s: that would be a source or a list of entries by its name", name)
	}
	return name, nil
}

// indexFile is the list of entries beside a table.
func indexFile(file string) string {
	base := filepath.Base(file)
	if stem := strings.TrimSuffix(base, filepath.Ext(base)); stem != "" { // else a name that begins with a dot, and no ending
		base = stem
	}
	return filepath.Join(filepath.Dir(file), base+".txt")
}

// namedText is a file to be.
type namedText struct {
	name string
	data []byte
}

// writeTogether writes files that belong together: all of them, or none.
func writeTogether(files []namedText) error {
	for _, f := range files {
		if info, err := os.Stat(f.name); err == nil && !info.Mode().IsRegular() {
			return badCall("output", "writing %s: it is no regular file", f.name)
		}
	}
	var made []*beside
	for _, f := range files {
		b, err := writeBeside(f.name, func(w io.Writer) error {
			_, err := w.Write(f.data)
			return err
		})
		if err != nil {
			for _, b := range made {
				b.remove()
			}
			return err
		}
		made = append(made, b)
	}
	for i, b := range made {
		if err := b.appear(); err != nil {
			for _, rest := range made[i+1:] {
				rest.remove()
			}
			return err
		}
	}
	return nil
}
