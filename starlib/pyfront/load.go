package pyfront

import (
	"context"
	"errors"
	"strings"

	"go.starlark.net/starlark"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/starlib"
)

// Options say which script is run, and with what. Args, Library and Frontend of
// the embedded Options are not used.
type Options struct {
	starlib.Options
	// Argv is what stands behind the script's name on the command line.
	Argv []string
	// Tool is offered flags that the script doesn't declare, with all words that
	// follow them, and says how many of the words are its own; 0 is none. nil has
	// no flags.
	Tool func(words []string) int
}

// Load runs a Python script. The *Script is never nil and holds what was learned
// before an error, above all the parameters. Errors are diag.List or
// *diag.Message; the codes "bad-value" and "bad-call" are those of wrong
// arguments, and "help" asks for Usage instead of a result.
func Load(ctx context.Context, o Options) (*starlib.Script, error) {
	r := &run{o: o, customs: map[*starlib.CollectiveHooks]*custom{}, collectives: map[string]*class{}}
	fe := &starlib.Frontend{
		Parse: parse, Names: r.names, Buffer: bufferOf, InOut: [2]starlark.Value{inputBuffer, outputBuffer},
		ProgramAttr: r.programAttr, Gone: gone, Advice: strings.NewReplacer(`"input"`, "Buffer.input", `"output"`, "Buffer.output").Replace, Finish: r.finish,
		Ended: func() bool { return r.ended },
	}
	o.Options.Frontend = fe
	script, err := starlib.Load(ctx, o.Options)
	if r.failed != nil && err != nil && ctx.Err() == nil {
		err = r.failed
	}
	return script, err
}

// run is one run of a script.
type run struct {
	o      Options
	env    *starlib.Env
	chunk  starlark.Value // the language's own
	parsed bool           // the script has read its arguments
	line   string         // printed without a line end so far
	ended  bool           // by sys.exit, well
	failed error          // why the script was ended by sys.exit or wrong arguments
	ids    uint32         // of the latest object

	strType *starlark.Builtin
	types   starlark.StringDict // of Starlark's that have another function here
	customs map[*starlib.CollectiveHooks]*custom

	collectives map[string]*class // MSCCL++'s, by name
}

// finish is the end of the script: what it didn't read of its arguments can only
// be the tool's.
func (r *run) finish() error {
	if r.line != "" {
		r.env.Print(diag.Pos{File: r.o.File}, r.line)
		r.line = ""
	}
	if r.parsed {
		return nil
	}
	for words := r.o.Argv; len(words) > 0; {
		n := r.tool(words)
		if n == 0 && isFlag(words[0]) {
			return diag.Errorf(diag.Pos{File: r.o.File}, "bad-call", "unknown flag %s", words[0]).
				Suggest("the script declares no flags")
		}
		words = words[max(n, 1):]
	}
	return nil
}

// tool asks how many words are the tool's.
func (r *run) tool(words []string) int {
	if r.o.Tool == nil || !isFlag(words[0]) {
		return 0
	}
	return min(r.o.Tool(words), len(words))
}

// bufferValue is Buffer.input, output or scratch.
type bufferValue struct {
	name string
	id   ir.BufferID
}

var (
	inputBuffer   = &bufferValue{"input", ir.Input}
	outputBuffer  = &bufferValue{"output", ir.Output}
	scratchBuffer = &bufferValue{"scratch", ir.FirstScratch}
)

func (b *bufferValue) String() string       { return "Buffer." + b.name }
func (b *bufferValue) Type() string         { return "Buffer" }
func (b *bufferValue) Freeze()              {}
func (b *bufferValue) Truth() starlark.Bool { return true }
func (b *bufferValue) Hash() (uint32, error) {
	return starlark.String(b.name).Hash()
}

// bufferOf is what a value names: all but Buffer.input and Buffer.output name
// scratch, strings of these names too.
func bufferOf(v starlark.Value) (ir.BufferID, string, error) {
	switch v := v.(type) {
	case *bufferValue:
		return v.id, v.name, nil
	case starlark.String:
		return ir.FirstScratch, string(v), nil
	case starlark.NoneType:
		return 0, "", errors.New("got None, want Buffer.input, Buffer.output or a scratch buffer's name")
	}
	if _, err := v.Hash(); err != nil {
		return 0, "", errors.New("got " + v.Type() + ", want Buffer.input, Buffer.output or a scratch buffer's name")
	}
	return ir.FirstScratch, v.String(), nil
}

// gone explains the methods that references once had.
func gone(name string) error {
	switch name {
	case "reduce":
		return diag.Errorf(diag.Pos{}, "old-call", "reduce: other: got int, want ref").
			Suggest("c.reduce(rank, buffer, index, ...) is chunk(rank, buffer, index).reduce(c, ...) now")
	case "send":
		return diag.Errorf(diag.Pos{}, "old-call", "send: msccl-tools has no such method any more").
			Suggest("c.send(rank, buffer, index, ...) is c.copy(rank, buffer, index, ...) now")
	case "prog":
		return diag.Errorf(diag.Pos{}, "python", "prog: a reference doesn't give its program away")
	}
	return nil
}
