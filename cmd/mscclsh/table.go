package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/table"
)

// tableSettings are what the flags of table alone say.
type tableSettings struct {
	coll       table.Collective
	bytes      int64
	ranks      int32
	nodes      int32 // 0 is 1
	root       int32
	registered bool
	maxCTAs    int32 // 0 is any number
	scratch    int64
	scratchSet bool
	given      []string // names of the flags that were given
}

// has reports whether a flag was given.
func (t *tableSettings) has(name string) bool {
	for _, g := range t.given {
		if g == name {
			return true
		}
	}
	return false
}

// tableFlags are those of table alone. They describe a call for table explain.
func tableFlags() []toolFlag {
	only := func(name string, set func(*Settings, string) error) func(*Settings, string) error {
		return func(s *Settings, v string) error {
			s.Table.given = append(s.Table.given, name)
			return set(s, v)
		}
	}
	number := func(name string, least int64, set func(*Settings, int32)) func(*Settings, string) error {
		return only(name, func(s *Settings, v string) error {
			n, err := parseNumber(name, v, least, math.MaxInt32)
			if err == nil {
				set(s, int32(n))
			}
			return err
		})
	}
	return []toolFlag{
		{Name: "coll", Arg: "NAME", Values: table.CollectiveNames(), Help: "explain: the collective",
			set: only("coll", func(s *Settings, v string) (err error) {
				if s.Table.coll, err = table.ParseCollective(v); err != nil {
					return fmt.Errorf("coll: got %q, want %s", v, orList(table.CollectiveNames()))
				}
				return nil
			})},
		{Name: "bytes", Arg: "SIZE", Help: "explain: the size of the call, the larger of one rank's input and output",
			set: only("bytes", size("bytes", 1, func(s *Settings, n int64) { s.Table.bytes = n }))},
		{Name: "ranks", Arg: "N", Help: "explain: how many ranks the communicator has",
			set: number("ranks", 1, func(s *Settings, n int32) { s.Table.ranks = n })},
		{Name: "nodes", Arg: "N", Default: "1", Help: "explain: on how many hosts they are",
			set: number("nodes", 1, func(s *Settings, n int32) { s.Table.nodes = n })},
		{Name: "root", Arg: "RANK", Default: "0", Help: "explain: the root; of sendrecv the rank that sends",
			set: number("root", 0, func(s *Settings, n int32) { s.Table.root = n })},
		{Name: "registered", Help: "explain: both buffers lie in windows that were registered collectively",
			set: only("registered", yes(func(s *Settings, v bool) { s.Table.registered = v }))},
		{Name: "max-ctas", Arg: "N", Help: "explain: thread blocks that the communicator allows (ncclConfig_t's maxCTAs)",
			set: number("max-ctas", 1, func(s *Settings, n int32) { s.Table.maxCTAs = n })},
		{Name: "scratch", Arg: "SIZE", Help: "explain: scratch memory that a rank may use (MSCCLSH_SCRATCH)",
			set: only("scratch", size("scratch", 0, func(s *Settings, n int64) { s.Table.scratch, s.Table.scratchSet = n, true }))},
	}
}

// parseNumber reads a number from least to most.
func parseNumber(name, v string, least, most int64) (int64, error) {
	var n int64
	if _, err := fmt.Sscanf(v+" ", "%d ", &n); err != nil || n < least || n > most || fmt.Sprint(n) != strings.TrimSpace(v) {
		return 0, fmt.Errorf("%s: got %q, want a number from %d to %d", name, v, least, most)
	}
	return n, nil
}

// tableEntry is the command's row in the table of commands.
func tableEntry() command {
	return command{
		Name:  "table",
		Args:  "build FILE.star -o FILE|FOLDER/ | show [FILE] | explain --coll NAME --bytes SIZE --ranks N [FILE] | lint [FILE]",
		Short: "Make, read and judge tables of algorithms, by which the NCCL library chooses",
		Long: `A table says which program serves which calls of NCCL's interface: its collective, ranks, sizes, data types,
buffers. Its source is a script of calls of algorithm(...). docs/table.md tells all of it.

build runs the source, compiles every entry for this tool's own runtimes and judges it at every size of its range;
if one doesn't hold nothing is written. In a folder the file is algorithms.mscclsh; a list of the entries,
algorithms.txt, goes beside it. The same source gives the same bytes.

show lists the entries in the order in which they are tried. explain tells which of them a call gets, and of every
other one of that collective the first reason why not, in the words that the library logs (MSCCLSH_LOG=choice).
lint finds entries that overlap or can never match, gaps between ranges, numbers of ranks and collectives that are
missing, and programs that aren't safe at some size; with --strict warnings fail too.

FILE is a table or its source. Without one the table that the library comes with is meant.`,
		Examples: []string{
			"mscclsh table build algorithms.star -o table/",
			"mscclsh table show",
			"mscclsh table explain --coll allreduce --bytes 64KiB --ranks 8 --in-place",
			"mscclsh table explain --coll allgather --bytes 16MiB --ranks 2 --registered table/",
			"mscclsh table lint --strict algorithms.star",
		},
		Flags:   []string{"emit-file", "dtype", "op", "in-place", "json", "quiet", "strict", "max-steps"},
		Own:     tableFlags(),
		MinArgs: 1,
		MaxArgs: 2,
		Values:  []string{"build", "show", "explain", "lint"},
		Run:     func(ctx context.Context, s *Session, args []string) error { return s.table(ctx, args) },
	}
}

// The names of what table build writes in a folder.
const (
	tableFile   = "algorithms.mscclsh"
	defaultFile = starlib.LibraryPrefix + algorithms.DefaultTable + ".star"
)

// table carries out the command.
func (s *Session) table(ctx context.Context, args []string) error {
	if err := s.checkTableFlags(args[0]); err != nil {
		return err
	}
	file := defaultFile
	if len(args) > 1 {
		file = args[1]
	}
	if args[0] == "build" && len(args) < 2 {
		return badCallHint("missing-argument", "mscclsh table build algorithms.star -o table/", "table build: the source is missing")
	}
	part := map[string]func(context.Context, string) error{
		"build": s.tableBuild, "show": s.tableShow, "explain": s.tableExplain, "lint": s.tableLint,
	}[args[0]]
	err := part(ctx, file)
	s.begin("") // no progress line before what is wrong
	return err
}

// checkTableFlags refuses flags that the part of the command has no use for.
func (s *Session) checkTableFlags(part string) error {
	unused := func(given bool, flag, of string) error {
		if !given || strings.Contains(of, part) {
			return nil
		}
		return badCall("flag-unused", "--%s is for table %s, not for table %s", flag, strings.ReplaceAll(of, "|", " and "), part)
	}
	for _, name := range s.Set.Table.given {
		if err := unused(true, name, "explain"); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		given    bool
		flag, of string
	}{
		{s.Set.File != "", "emit-file", "build"},
		{s.Set.DType != 0, "dtype", "explain"},
		{s.Set.Op != 0, "op", "explain"},
		{s.Set.InPlace, "in-place", "explain"},
		{s.Set.JSON, "json", "show|explain|lint"},
		{s.Set.Strict, "strict", "lint"},
		{s.Set.Quiet, "quiet", "build"},
	} {
		if err := unused(f.given, f.flag, f.of); err != nil {
			return err
		}
	}
	return nil
}

// openTable is a table as a file, or made of its source; notes are of the latter.
func (s *Session) openTable(ctx context.Context, file string) (*table.Table, diag.List, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, tableFile)
	}
	s.begin("reading " + file)
	data, err := readScript(ctx, file)
	if err != nil {
		return nil, nil, scriptNotFound(file, err)
	}
	if strings.HasSuffix(file, ".star") {
		t, notes, err := s.makeTable(ctx, source{file, data})
		return t, notes, err
	}
	t, err := table.Decode(data)
	if err != nil {
		m := diag.Errorf(diag.Pos{File: file}, "table", "%v", err)
		if bytes.IndexByte(data, 0) < 0 {
			m.Suggest("the source of a table has a name that ends in .star")
		}
		return nil, nil, m
	}
	return t, nil, nil
}

// makeTable runs a source and compiles its entries.
func (s *Session) makeTable(ctx context.Context, src source) (*table.Table, diag.List, error) {
	calls, err := s.tableSource(ctx, src)
	if err != nil {
		return nil, nil, err
	}
	k := &kitchen{s: s, source: src.file, scripts: map[string]*traced{}, names: map[string]int{}}
	recipes, err := k.recipes(ctx, calls)
	if err != nil {
		return nil, nil, err
	}
	s.begin("")
	return table.Build(version, recipes)
}

// portable names sources as seen from the folder of the table's own, so that the same
// source gives the same bytes wherever it lies.
func portable(t *table.Table, source string) {
	for i := range t.Entries {
		e := &t.Entries[i]
		pos := e.Pos()
		e.Source = fmt.Sprintf("%s:%d", seenFrom(source, pos.File), pos.Line)
	}
}

// seenFrom is a file's name as seen from the folder of a source; of the library it is as it is.
func seenFrom(source, file string) string {
	if strings.HasPrefix(file, starlib.LibraryPrefix) {
		return file
	}
	rel, err := filepath.Rel(filepath.Dir(source), file)
	if err != nil {
		return file
	}
	return filepath.ToSlash(rel)
}

// rangeOf reads "from..to" in bytes, both included, or "from..<to" without to; an end
// that is missing is open.
func rangeOf(text string) (low, high int64, err error) {
	from, to, isRange := strings.Cut(text, "..")
	if !isRange {
		return 0, 0, fmt.Errorf("got %q, want a range such as 1KiB..32KiB, 1KiB..<32KiB, 4MiB.. or ..64KiB", text)
	}
	low, high = 0, table.OpenEnd
	to, below := strings.CutPrefix(to, "<")
	if strings.TrimSpace(from) != "" {
		if low, err = parseSize(from); err != nil {
			return 0, 0, err
		}
	}
	if strings.TrimSpace(to) != "" {
		if high, err = parseSize(to); err != nil {
			return 0, 0, err
		}
	}
	if below {
		high--
	}
	if low > high || below && strings.TrimSpace(to) == "" {
		return 0, 0, fmt.Errorf("got %q, and no size lies between", text)
	}
	return low, high, nil
}

// none is an index or a root that isn't there.
const none = int32(ir.None)
