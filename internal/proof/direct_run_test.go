package proof

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
	"github.com/mscclsh/mscclsh/runtime/cpu"
)

// TestDirectRuns runs random programs of protocol Direct on the CPU: the right ones
// give the right bits under every order of events, and those that can't end are
// found to be stuck.
func TestDirectRuns(t *testing.T) {
	count := uint64(amount("MSCCLSH_PROGRAMS", 3000))
	right, stuck := 0, 0
	for seed := range count {
		p, err := randomDirect(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		v, _, err := checked(p)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if v.errors != deadlock && !v.right() || v.deadRace { // Go's race detector minds every race
			continue
		}
		for chaos := range uint64(3) {
			if chaos == 0 && !v.right() {
				continue // its races were not looked for
			}
			o := cpu.Options{Bytes: 64 * int64(p.Coll.NumChunks()), DType: runtime.Int32, Exact: true, AnySize: true}
			if chaos > 0 {
				o.Chaos = &cpu.Chaos{Seed: seed*3 + chaos}
			}
			rep, err := cpu.Run(context.Background(), p, o)
			var m *diag.Message
			switch {
			case v.right() && (err != nil || !rep.Verified):
				t.Fatalf("seed %d, chaos %d: the checker holds, the run doesn't: %v %+v\n%s", seed, chaos, err, rep, textOf(p))
			case !v.right() && (!errors.As(err, &m) || m.Code != "deadlock"):
				t.Fatalf("seed %d, chaos %d: the checker finds a deadlock, the run gives %v\n%s", seed, chaos, err, textOf(p))
			}
		}
		if v.right() {
			right++
		} else {
			stuck++
		}
	}
	t.Logf("%d right programs, %d that get stuck", right, stuck)
	if count >= 1000 && (right < 100 || stuck < 20) {
		t.Errorf("want more of both")
	}
}

func textOf(p *ir.Program) string {
	var text strings.Builder
	if err := p.WriteText(&text); err != nil {
		return err.Error()
	}
	return text.String()
}
