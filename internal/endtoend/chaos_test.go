package endtoend

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	rt "github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
	"github.com/mscclsh/mscclsh/starlib"
)

// chaosSlot is the payload of a slot in bytes; a chunk is as large, so that a
// message holds one chunk and slots are scarce.
const chaosSlot = 64

// Every algorithm of the library gives the same bits under every seed of the
// CPU interpreter's chaos mode, with any depth from the one that the checker
// proves on; one slot less deadlocks under every seed. MSCCLSH_SEEDS sets the
// number of seeds for each.
func TestChaosOfTheLibrary(t *testing.T) {
	count := setting("MSCCLSH_SEEDS", 10)
	eachVariant(t, func(t *testing.T, p *ir.Program) {
		r, err := checker.Check(context.Background(), p, checker.Options{})
		if err != nil || !r.OK {
			t.Fatalf("%v %v", err, r.Err())
		}
		o := cpu.Options{Bytes: chaosSlot * int64(p.Coll.NumChunks()), DType: rt.FP32, Seed: 1, KeepOutputs: true, AnySize: true}
		var first [][]byte
		for seed := range count {
			rng := rand.New(rand.NewPCG(seed, 5))
			o.Chaos = &cpu.Chaos{Seed: seed}
			if !p.Direct() {
				o.Chaos.Slots = r.MinSlots + rng.Int32N(3)
			}
			got, err := cpu.Run(context.Background(), p, o)
			if err != nil || !got.Verified {
				t.Fatalf("seed %d, %d slots: %v %+v", seed, o.Chaos.Slots, err, got)
			}
			if first == nil {
				first = got.Outputs
			}
			for q := range first {
				if !bytes.Equal(first[q], got.Outputs[q]) {
					t.Fatalf("seed %d: rank %d has other bits than with seed 0", seed, q)
				}
			}
			if r.MinSlots < 2 {
				continue
			}
			o.Chaos.Slots = r.MinSlots - 1
			if _, err := cpu.Run(context.Background(), p, o); err == nil || !strings.Contains(err.Error(), "deadlock") {
				t.Fatalf("seed %d, %d slots: got %v, want a deadlock", seed, o.Chaos.Slots, err)
			}
		}
	})
}

// variant is a way to compile the library.
type variant struct {
	name   string
	args   map[string]string
	target ir.Target
}

var variants = []variant{
	{"msccl", nil, ir.TargetMSCCL},
	{"native", nil, ir.TargetNative},
	{"LL", map[string]string{"protocol": "LL"}, ir.TargetMSCCL},
	{"LL128", map[string]string{"protocol": "LL128"}, ir.TargetNative},
	{"direct", map[string]string{"protocol": "Direct"}, ir.TargetNative},
}

// eachVariant runs a test on every algorithm of the library, with its defaults, for
// slots that hold one chunk each.
func eachVariant(t *testing.T, test func(t *testing.T, p *ir.Program)) {
	for _, name := range algorithms.ChunkRouting() {
		for _, v := range variants {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				test(t, v.compiled(t, name))
			})
		}
	}
}

func (v *variant) compiled(t *testing.T, name string) *ir.Program {
	t.Helper()
	s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + name + ".star", Library: algorithms.FS,
		Args: v.args, Host: starlib.Host{Topology: machine.Topology}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compiler.Compile(context.Background(), s.Programs[0].DAG, compiler.Options{Target: v.target, SlotBytes: chaosSlot})
	if err != nil {
		t.Fatal(err)
	}
	return r.Program
}

// compiled is a library algorithm as it is for msccl.
func compiled(t *testing.T, name string) *ir.Program {
	t.Helper()
	return variants[0].compiled(t, name)
}
