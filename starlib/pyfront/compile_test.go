package pyfront_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// What a script's own check accepts, the compiled program does too: it leaves in
// the outputs what the script was seen to leave there.
func TestCompiledProgramsDoWhatTheirScriptsDo(t *testing.T) {
	instances := func(s string) string { return strings.Replace(s, "), 1)", "), 3)", 1) }
	for name, source := range map[string]string{
		"own":                  shift + "program(3, 2, False, [0, 1])",
		"own, in place":        shift + "program(4, 2, True, [2, 1, 0])",
		"own, three times":     instances(shift) + "program(3, 2, False, [0, 1])",
		"own layout, in place": ownGather,
		"own sums":             ownSum,
		"in place under the names of msccl-tools": in("AllGather(3, 1, True)", 3,
			"for r in range(3):", "    c = chunk(r, Buffer.input, 0)", "    for k in range(1, 3): c = c.copy((r + k) % 3)"),
	} {
		t.Run(name, func(t *testing.T) {
			got := load(t, source)
			if got.err != "" {
				t.Fatal(got.err)
			}
			ctx := context.Background()
			for _, p := range got.script.Programs {
				res, err := compiler.Compile(ctx, p.DAG, compiler.Options{})
				if err != nil {
					t.Fatal(err)
				}
				judged, err := checker.Check(ctx, res.Program, checker.Options{})
				if err != nil || !judged.OK {
					t.Fatalf("the compiled program is refused: %v %v", err, judged)
				}
				ran, err := cpu.Run(ctx, res.Program, cpu.Options{Bytes: int64(p.DAG.Coll.NumChunks()) * 768, Iterations: 1})
				if err != nil || !ran.Verified || ran.Compared == 0 {
					t.Fatalf("running it: %v, %+v", err, ran)
				}
			}
		})
	}
}
