package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
	rt "github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// setting is a number from the environment, or what is usual.
func setting(name string, usual uint64) uint64 {
	if v, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return v
	}
	return usual
}

// TestRandomPrograms is the property that everything else serves: a program means
// after all of it what it meant as written.
func TestRandomPrograms(t *testing.T) {
	first, count := setting("MSCCLSH_SEED", 1), setting("MSCCLSH_PROGRAMS", 1000)
	if testing.Short() && os.Getenv("MSCCLSH_PROGRAMS") == "" {
		count = 100
	}
	var next, done atomic.Uint64
	var workers sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < count && !t.Failed(); i = next.Add(1) - 1 {
				if err := oneProgram(first + i); err != nil {
					t.Errorf("MSCCLSH_SEED=%d: %v", first+i, err)
				}
				if n := done.Add(1); n%10000 == 0 {
					t.Logf("%d programs in %s", n, time.Since(start).Round(time.Second))
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d programs", done.Load())
}

// oneProgram takes one random program all the way.
func oneProgram(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 0x6d7363636c)) // any constant: a stream of its own
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := randprog.Generate(rng, randprog.Options{Direct: true})
	if err != nil {
		return err
	}
	opt := randomOptions(rng, d.Protocol)
	explain := func(err error) error {
		var text strings.Builder
		if werr := d.WriteText(&text); werr != nil {
			return werr
		}
		return fmt.Errorf("%w\noptions %+v\n%s", err, opt, text.String())
	}
	res, err := compiler.Compile(ctx, d, opt)
	if err != nil {
		return explain(fmt.Errorf("compiling: %w", err))
	}
	rep, err := checker.Check(ctx, res.Program, checker.Options{})
	if err != nil {
		return explain(err)
	}
	if !rep.OK {
		return explain(fmt.Errorf("the checker refuses it: %w", rep.Messages))
	}
	p, err := writtenAndRead(res.Program)
	if err != nil {
		return explain(err)
	}
	// As threads happen to run, and in an order that is drawn.
	for _, chaos := range []*cpu.Chaos{nil, {Seed: seed}} {
		if err := runOnce(ctx, rng, p, chaos); err != nil {
			return explain(err)
		}
	}
	return nil
}

// randomOptions draws a target that has the protocol, connections, a size window and
// passes to leave out. Slots are small, so that a few bytes already come in many
// messages.
func randomOptions(rng *rand.Rand, p ir.Protocol) compiler.Options {
	o := compiler.Options{Target: ir.Target(rng.IntN(len(ir.TargetNames()))), SlotBytes: 16 << rng.IntN(6)}
	if p == ir.Direct {
		o.Target = ir.TargetNative
	}
	if rng.IntN(2) == 0 {
		o.Slots = 1 + rng.Int32N(4)
	}
	if rng.IntN(4) == 0 {
		o.MaxBytes = 64 << rng.IntN(8)
	}
	for _, p := range compiler.Passes() {
		if !p.Required && rng.IntN(8) == 0 {
			o.Disable = append(o.Disable, p.Name)
		}
	}
	return o
}

// writtenAndRead is p by way of its text form; it must be the same.
func writtenAndRead(p *ir.Program) (*ir.Program, error) {
	var text, again bytes.Buffer
	if err := p.WriteText(&text); err != nil {
		return nil, err
	}
	q, err := ir.ParseProgram(bytes.NewReader(text.Bytes()), "program")
	if err != nil {
		return nil, fmt.Errorf("reading what was written: %w", err)
	}
	if err := q.WriteText(&again); err != nil {
		return nil, err
	}
	if diff := cmp.Diff(text.String(), again.String()); diff != "" {
		return nil, fmt.Errorf("reading and writing changed the program:\n%s", diff)
	}
	return q, nil
}

// runOnce runs p on a random size within its window.
func runOnce(ctx context.Context, rng *rand.Rand, p *ir.Program, chaos *cpu.Chaos) error {
	dtypes := []rt.DType{rt.FP32, rt.FP64, rt.Int32, rt.Uint8, rt.BF16}
	ops := []rt.ReduceOp{rt.Sum, rt.Sum, rt.Min, rt.Max, rt.Avg}
	opt := cpu.Options{DType: dtypes[rng.IntN(len(dtypes))], Op: ops[rng.IntN(len(ops))], Seed: rng.Uint64(),
		Exact: rng.IntN(2) == 0, Chaos: chaos}
	opt.Bytes = randomSize(rng, p, int64(opt.DType.Size()))
	rep, err := cpu.Run(ctx, p, opt)
	if err != nil {
		return fmt.Errorf("running %d bytes of %v %v: %w", opt.Bytes, opt.DType, opt.Op, err)
	}
	if !rep.Verified {
		return fmt.Errorf("running %d bytes of %v %v: %d elements are wrong, first %v", opt.Bytes, opt.DType, opt.Op,
			rep.Wrong, rep.Mismatches)
	}
	return nil
}

// randomSize is a size that needs no padding, so that it stays within the window,
// from an element a chunk to several tiles; or, where sizes are open, any number
// of elements.
func randomSize(rng *rand.Rand, p *ir.Program, elem int64) int64 {
	unit := int64(max(p.Coll.NumChunks(), 1)) * elem
	most := 3 * p.Transport.SlotBytes / elem
	if p.Direct() {
		most = 1024 / elem
	}
	if p.MaxBytes > 0 {
		most = min(most, p.MaxBytes/unit)
	}
	if most < 1 {
		return 0 // not one element a chunk fits
	}
	n := (1 + rng.Int64N(most)) * unit
	if p.MaxBytes == 0 && p.MinBytes == 0 && rng.IntN(2) == 0 {
		n -= rng.Int64N(unit/elem) * elem
	}
	return max(n, p.MinBytes)
}
