package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Check judges without running: a script's program, a program in a file, or all
// programs in files and folders, as a table.
func (s *Session) Check(ctx context.Context, args []string) error {
	if s.Set.Explain != "" {
		return s.explain(ctx, args)
	}
	if isScript(args[0]) || len(args) == 1 && !isFolder(args[0]) {
		return s.finish(ctx, s.guard(func() error { return s.checkOne(ctx, args[0], args[1:]) }))
	}
	names, rest := splitFiles(args)
	if len(names) == 1 && !isFolder(names[0]) {
		return s.finish(ctx, s.guard(func() error { return s.checkOne(ctx, names[0], rest) }))
	}
	return s.guard(func() error { return s.checkAll(ctx, names, rest) })
}

// checkOne is the whole report on one program.
func (s *Session) checkOne(ctx context.Context, file string, rest []string) error {
	src, err := s.open(ctx, file)
	if err != nil {
		return err
	}
	f := formatOf(src)
	if f == nil && !isScript(file) {
		f = findFormat("text")
	}
	if f != nil && f.read != nil {
		s.judgeOnly = true
		return s.file(ctx, f, src, rest)
	}
	s.judgeOnly = true
	return s.script(ctx, src, rest)
}

// isScript tells a script by its name.
func isScript(file string) bool {
	f := formatOfName(file)
	return strings.HasPrefix(file, "@") || f != nil && f.script
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// splitFiles takes the names of files apart from the flags among them.
func splitFiles(args []string) (names, flags []string) {
	tool := flagTable()
	for i := 0; i < len(args); i++ {
		if !isFlag(args[i]) {
			names = append(names, args[i])
			continue
		}
		flags = append(flags, args[i])
		a, attached, err := oneScriptArg(args[i], tool)
		if err == nil && !attached && takesValue(tool, a.name) && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	return names, flags
}

// checkedFile is a file to check: where it is, and what the table calls it.
type checkedFile struct{ path, name string }

// checkedFiles finds the programs: files that are named, and those of a known kind
// in folders. Names are relative to a folder that is the only one.
func checkedFiles(names []string) ([]checkedFile, error) {
	var out []checkedFile
	for _, name := range names {
		switch {
		case isFolder(name):
			found, err := inFolder(name, len(names) == 1)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		case isScript(name):
			return nil, badCallHint("bad-argument", "mscclsh check "+name, "check: %s: scripts are checked one at a time", name)
		default:
			name = filepath.Clean(name)
			if _, err := os.Stat(name); err != nil {
				return nil, readError(name, err)
			}
			out = append(out, checkedFile{name, filepath.ToSlash(name)})
		}
	}
	slices.SortFunc(out, func(a, b checkedFile) int { return strings.Compare(a.name, b.name) })
	out = slices.Compact(out)
	if len(out) == 0 {
		return nil, badCallHint("no-file", "programs end in "+orList(programEndings()), "%s: no program is in there", strings.Join(names, ", "))
	}
	return out, nil
}

// programEndings are those of files that hold programs and nothing else.
func programEndings() []string {
	var list []string
	for _, f := range formatTable() {
		if f.read != nil {
			list = append(list, f.Exts...)
		}
	}
	return list
}

// inFolder lists the programs in a folder and the folders in it, hidden ones
// apart. A .txt file counts if it begins as a program does.
func inFolder(folder string, relative bool) ([]checkedFile, error) {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, readError(folder, err)
	}
	var out []checkedFile
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := strings.HasPrefix(d.Name(), ".") && path != root; hidden || d.IsDir() {
			if hidden && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil // pipes and devices have no end; links to files are followed
		}
		if f := formatOfName(path); f == nil || f.read == nil || f.Name == "text" && !beginsAsText(path) {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return fmt.Errorf("naming %s: %w", path, err)
		}
		c := checkedFile{filepath.Join(folder, rel), filepath.ToSlash(rel)}
		if !relative {
			c.name = filepath.ToSlash(c.path)
		}
		out = append(out, c)
		return nil
	})
	if err != nil {
		return nil, readError(folder, err)
	}
	return out, nil
}

// beginsAsText reports whether a regular file begins with the word program, after
// what the text form skips: a byte order mark, blank lines and comments.
func beginsAsText(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, 1<<16)
	n, _ := io.ReadFull(f, begin) // a file that can't be read has no beginning
	text := strings.TrimPrefix(string(begin[:n]), "\ufeff")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return strings.HasPrefix(line, "program \"")
		}
	}
	return false
}
