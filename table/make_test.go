package table_test

import (
	"context"
	"slices"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/runtime/cuda"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/table"
)

// scripted is what a script of the library makes; args are names and values in turn.
func scripted(t testing.TB, script string, args ...string) *starlib.Program {
	t.Helper()
	values := map[string]string{}
	for i := 0; i < len(args); i += 2 {
		values[args[i]] = args[i+1]
	}
	s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + script + ".star", Library: algorithms.FS,
		Args: values, Host: starlib.Host{Topology: machine.Topology}})
	if err != nil {
		t.Fatalf("%s %v: %v", script, args, err)
	}
	return &s.Programs[0]
}

// compiled is a program of the library.
func compiled(t testing.TB, script string, args ...string) *ir.Program {
	t.Helper()
	res, err := compiler.Compile(context.Background(), scripted(t, script, args...).DAG, compiler.Options{Target: ir.TargetNative})
	if err != nil {
		t.Fatalf("%s %v: %v", script, args, err)
	}
	return res.Program
}

// recipe is an entry of a script with programs for the places named: "in", "out" or "both".
func recipe(t testing.TB, name, place, script string, args ...string) table.Recipe {
	t.Helper()
	r := table.Recipe{Name: name, Pos: diag.Pos{File: "t.star", Line: 1}, Title: script, MaxBytes: table.OpenEnd}
	if place != "out" {
		r.InPlace = compiled(t, script, append(args, "inplace", "true")...)
	}
	if place != "in" {
		r.OutOfPlace = compiled(t, script, append(args, "inplace", "false")...)
	}
	return r
}

// compiledOne is a one-sided program of the library.
func compiledOne(t testing.TB, script string, args ...string) *ir.Program {
	t.Helper()
	p, err := compiler.CompileOneSided(context.Background(), scripted(t, script, args...).One, compiler.Options{Target: ir.TargetNative})
	if err != nil {
		t.Fatalf("%s %v: %v", script, args, err)
	}
	return p
}

// placed has the operations of a program for calls in place, or not.
func placed(p *ir.Program, inPlace bool) *ir.Program {
	q, spec, coll := *p, *p.Spec, *p.Coll
	coll.InPlace = inPlace
	spec.Coll = &coll
	q.Spec = &spec
	return &q
}

// oneRecipe is recipe for one-sided scripts; where a program for both places can be, it is that
// in place.
func oneRecipe(t testing.TB, name, place, script string, args ...string) table.Recipe {
	t.Helper()
	r := table.Recipe{Name: name, Pos: diag.Pos{File: "t.star", Line: 1}, Title: script, MaxBytes: table.OpenEnd}
	if place != "out" {
		r.InPlace = compiledOne(t, script, append(args, "inplace", "true")...)
	}
	if place != "in" {
		r.OutOfPlace = compiledOne(t, script, append(args, "inplace", "false")...)
	}
	if place == "both" && table.ForBothPlaces(r.InPlace) {
		r.Both = placed(r.InPlace, false)
	}
	return r
}

// made is a table of recipes.
func made(t testing.TB, recipes ...table.Recipe) *table.Table {
	t.Helper()
	x, _, err := table.Build("test", recipes)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// image is a table as a file.
func image(t testing.TB, x *table.Table) []byte {
	t.Helper()
	data, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// at is a position in a table's source.
func at(line int) diag.Pos { return diag.Pos{File: "t.star", Line: int32(line)} }

// equalTables compares a program's tables.
func equalTables(a, b *cuda.Tables) bool {
	return slices.Equal(a.TBs, b.TBs) && slices.Equal(a.StepsPerTB, b.StepsPerTB) && slices.Equal(a.Steps, b.Steps) &&
		slices.Equal(a.Deps, b.Deps) && slices.Equal(a.Chunks, b.Chunks) && slices.Equal(a.BaseBuf, b.BaseBuf) &&
		slices.Equal(a.BaseChunk, b.BaseChunk) && slices.Equal(a.Divides, b.Divides)
}
