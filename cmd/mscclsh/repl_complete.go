package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mscclsh/mscclsh/starlib"
)

// Complete proposes what may stand in place of the last word of a line; word is
// that word as it is now. Candidates begin with it.
func (s *Shell) Complete(line string) (word string, candidates []string) {
	before := strings.TrimLeft(line, " \t")
	name := firstWord(strings.TrimPrefix(before, ":"))
	if c := findShellCommand(name); c != nil && strings.ContainsAny(before, " \t") && s.isCommand(before+"x") {
		word, candidates = s.completeCommand(c, before)
	} else {
		word, candidates = s.completeStatement(line)
	}
	candidates = slices.DeleteFunc(slices.Clone(candidates), func(c string) bool { return !strings.HasPrefix(c, word) })
	slices.Sort(candidates)
	return word, slices.Compact(candidates)
}

// completeCommand proposes flags, their values, files, and what the command has.
func (s *Shell) completeCommand(c *shellCommand, line string) (string, []string) {
	if c.Rest {
		rest := strings.TrimLeft(line[len(firstWord(line)):], " ")
		if c.Name == "time" {
			return s.Complete(rest)
		}
		return s.completeStatement(rest)
	}
	words := strings.Fields(line)
	word := ""
	if !strings.HasSuffix(line, " ") {
		word = words[len(words)-1]
		words = words[:len(words)-1]
	}
	tool := flagTable()
	if last, ok := strings.CutPrefix(words[len(words)-1], "--"); ok {
		if f := findFlag(tool, last); f != nil && f.takesValue() {
			return word, f.Values
		}
	}
	if strings.HasPrefix(word, "-") {
		var list []string
		for _, f := range c.Flags {
			list = append(list, "--"+f)
		}
		if c.Name == "load" || c.Name == "autoload" {
			list = append(list, s.fileParams(words)...)
		}
		return word, list
	}
	var list []string
	if c.Complete != nil {
		list = c.Complete(s)
	}
	if c.Files {
		list = append(list, fileNames(word, c)...)
	}
	return word, list
}

// fileParams are the flags of the script that a command names.
func (s *Shell) fileParams(words []string) []string {
	if len(words) < 2 {
		return nil
	}
	c := s.session(s.set)
	c.Out, c.Err, c.progress = devNull{}, devNull{}, nil
	src, err := c.open(s.ctx, words[1])
	if err != nil {
		return nil
	}
	script, err := c.params(s.ctx, src)
	if err != nil {
		return nil
	}
	var list []string
	for _, p := range script.Params {
		list = append(list, "--"+p.Name)
	}
	return list
}

// devNull takes everything and keeps nothing.
type devNull struct{}

func (devNull) Write(p []byte) (int, error) { return len(p), nil }

// fileNames are the files that a word may become: scripts of the library, or files
// and folders.
func fileNames(word string, c *shellCommand) []string {
	if strings.HasPrefix(word, "@") {
		return libraryFiles()
	}
	dir, base := filepath.Split(word)
	look := dir
	if look == "" {
		look = "."
	}
	entries, err := os.ReadDir(look)
	if err != nil {
		return nil
	}
	readable := readableEndings()
	var list []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".") {
			continue
		}
		switch ext := strings.TrimPrefix(filepath.Ext(name), "."); {
		case e.IsDir():
			list = append(list, dir+name+string(filepath.Separator))
		case c.Name != "load" && c.Name != "autoload" || slices.Contains(readable, ext):
			list = append(list, dir+name)
		}
	}
	if word == "" && (c.Name == "load") {
		list = append(list, starlib.LibraryPrefix)
	}
	return list
}

// keywords are the words of the language that names can't be.
var keywords = []string{"def", "for", "if", "while", "with", "return", "lambda", "pass", "not", "and", "or", "in", "else", "elif", "load", "break"}

// completeStatement proposes names, fields after a dot, keywords and buffers within
// calls.
func (s *Shell) completeStatement(line string) (string, []string) {
	at := len(line)
	for at > 0 && (isNameByte(line[at-1]) || line[at-1] == '.') {
		at--
	}
	word := line[at:]
	if at > 0 && line[at-1] == ')' && strings.HasPrefix(word, ".") {
		return word, s.fieldsOf(line[:at])
	}
	call, quote := openCall(line)
	if quote != 0 {
		start := strings.LastIndexByte(line, quote) + 1
		if slices.Contains([]string{"chunk", "copy"}, lastPart(call)) {
			return line[start:], s.live.Buffers()
		}
		if call == "load" {
			return line[start:], fileNames(line[start:], findShellCommand("load"))
		}
		return line[start:], nil
	}
	if dot := strings.LastIndexByte(word, '.'); dot >= 0 {
		var list []string
		for _, a := range s.live.Attrs(word[:dot]) {
			list = append(list, word[:dot+1]+a)
		}
		return word, list
	}
	list := append(s.live.Names(), keywords...)
	if at == len(line)-len(strings.TrimLeft(line, " \t")) {
		list = append(list, shellNames()...)
	}
	if sig := s.signature(call); sig != nil {
		for _, p := range sig.Params {
			list = append(list, p.Name+" = ")
		}
	} else if c := findShellCommand(call); c != nil {
		for _, f := range c.Flags {
			list = append(list, strings.ReplaceAll(f, "-", "_")+" = ")
		}
	}
	return word, list
}

// fieldsOf are the methods of what a call gives that a text ends with. Nothing is
// called to find out: the signature says it.
func (s *Shell) fieldsOf(text string) []string {
	depth, at := 0, len(text)-1
	for ; at >= 0; at-- {
		switch text[at] {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			depth--
		}
		if depth == 0 {
			break
		}
	}
	end := max(at, 0)
	for at = end; at > 0 && (isNameByte(text[at-1]) || text[at-1] == '.'); {
		at--
	}
	sig := s.signature(text[at:end])
	if sig == nil {
		return nil
	}
	var list []string
	for _, m := range starlib.Signatures() {
		if m.Receiver == sig.Result {
			list = append(list, "."+m.Name)
		}
	}
	return list
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// signature is that of a function or method that a call names. Of a method whose
// receiver isn't known any of the name will do.
func (s *Shell) signature(call string) *starlib.Signature {
	if call == "" {
		return nil
	}
	var found *starlib.Signature
	typ := ""
	if i := strings.LastIndexByte(call, '.'); i >= 0 {
		typ, _, _ = s.live.Value(call[:i])
	}
	for _, sig := range starlib.Signatures() {
		isMethod := strings.Contains(call, ".")
		if sig.Name == lastPart(call) && (sig.Receiver != "") == isMethod && (typ == "" || typ == sig.Receiver) && found == nil {
			found = &sig
		}
	}
	return found
}

// openCall is the name of the innermost call that is open at the end of a line, and
// the quote of the string that is open there, 0 for none.
func openCall(line string) (name string, quote byte) {
	var calls []string
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '#':
			return "", 0
		case c == '(' || c == '[' || c == '{':
			at := i
			for at > 0 && (isNameByte(line[at-1]) || line[at-1] == '.') {
				at--
			}
			if c != '(' {
				at = i
			}
			calls = append(calls, line[at:i])
		case c == ')' || c == ']' || c == '}':
			calls = calls[:max(len(calls)-1, 0)]
		}
	}
	if len(calls) > 0 {
		name = strings.TrimPrefix(calls[len(calls)-1], ".")
	}
	return name, quote
}

// rankWords are the ranks of the program, and full.
func rankWords(s *Shell) []string {
	list := []string{"full"}
	p, err := s.subject()
	if err != nil {
		return list
	}
	ranks := int32(0)
	if p.traced != nil {
		ranks = p.traced.Spec().Ranks()
	} else {
		ranks = p.read.Ranks()
	}
	for r := range min(ranks, 64) {
		list = append(list, strconv.Itoa(int(r)))
	}
	return list
}

func passWords(*Shell) []string {
	return append([]string{"before", "after", "all", "full"}, passNames()...)
}

func programNames(s *Shell) []string {
	list, err := s.programs()
	if err != nil {
		return nil
	}
	var names []string
	for i := range list {
		names = append(names, list[i].name)
	}
	return names
}
