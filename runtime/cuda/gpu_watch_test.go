package cuda_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// empty is a program of two ranks without steps, an allreduce in place of one chunk.
func empty(protocol ir.Protocol) *ir.Program {
	t := ir.Transport{Slots: 2, SlotBytes: 256}
	if protocol == ir.Direct {
		t = ir.Transport{}
	}
	p := &ir.Program{Spec: &ir.Spec{Name: "planted", Coll: ir.NewCollective(ir.AllReduce, 2, 1, true), Instances: 1, Protocol: protocol}, Transport: t}
	for range 2 {
		p.GPUs = append(p.GPUs, ir.GPU{Input: 1, Output: 1})
	}
	return p
}

// block gives a rank a thread block of these steps.
func block(p *ir.Program, r ir.Rank, steps ...ir.Step) {
	p.GPUs[r].TBs = append(p.GPUs[r].TBs, ir.ThreadBlock{Send: ir.None, Recv: ir.None, Steps: steps})
}

// step is one of a kind that talks to a peer, or to nobody.
func step(kind ir.StepKind, peer ir.Rank) ir.Step {
	s := ir.Step{Kind: kind, Src: ir.NoPlace, Dst: ir.NoPlace, Count: 1, SendPeer: ir.None, RecvPeer: ir.None}
	if kind.ReadsSrc() {
		s.Src = ir.Place{Buf: ir.Input}
	}
	if kind.WritesDst() {
		s.Dst = ir.Place{Buf: ir.Input}
	}
	if kind.Sends() {
		s.SendPeer = peer
	}
	if kind.Receives() {
		s.RecvPeer = peer
	}
	return s
}

// planted are bad programs, and what the watchdog must say of them.
func planted(protocol ir.Protocol) map[string]struct {
	p    *ir.Program
	says string
} {
	missing := empty(protocol) // rank 1 never sends
	block(missing, 0, step(ir.Recv, 1))
	unread := empty(protocol) // rank 1 never receives
	var sends []ir.Step
	for range 5 {
		sends = append(sends, step(ir.Send, 1))
	}
	block(unread, 0, sends...)
	cycle := empty(protocol) // two thread blocks wait for each other
	for tb := range int32(2) {
		s := step(ir.Nop, ir.None)
		s.Count, s.Post, s.DepStart, s.DepEnd = 0, true, tb, tb+1
		cycle.Deps = append(cycle.Deps, ir.Dep{TB: 1 - tb})
		block(cycle, 0, s)
	}
	full := "waits for a free slot towards rank 1 on channel 0"
	if protocol == ir.Direct {
		full = "waits for rank 1 to take or fetch what is sent on channel 0"
	}
	return map[string]struct {
		p    *ir.Program
		says string
	}{
		"no send":    {missing, "rank 0 thread block 0 step 0 (tile 0) waits for a message from rank 1 on channel 0"},
		"no receive": {unread, full},
		"cycle":      {cycle, "waits for thread block"},
	}
}

// TestGPUWatchdog runs programs that must hang: the watchdog ends them in time and
// says who waited for what, and the devices are as good as before.
func TestGPUWatchdog(t *testing.T) {
	lib := library(t)
	watchdog := 300 * time.Millisecond
	if onHost(lib) {
		watchdog = 60 * time.Millisecond
	}
	p := newParts(t, "watchdog")
	for _, set := range sets(devices(t, lib)) {
		for protocol := ir.Simple; protocol <= ir.Direct; protocol++ {
			for _, name := range []string{"no send", "no receive", "cycle"} {
				bad := planted(protocol)[name]
				p.do(fmt.Sprintf("%s with %v on %s", name, protocol, list(set)), func() (int64, error) {
					begin := time.Now()
					err := on(lib, bad.p, cuda.CommOptions{Devices: set, Watchdog: watchdog}, func(x *cuda.Program) error {
						_, err := x.Run(t.Context(), cuda.Options{Bytes: 64, NoVerify: true})
						return reported(err, bad.says)
					})
					if took := time.Since(begin); err == nil && took > 30*time.Second {
						err = fmt.Errorf("it took %v", took)
					}
					if err != nil {
						return 0, err
					}
					return afterwards(lib, set)
				})
			}
		}
	}
}

// reported wants the watchdog's report; a program of messages that never meet may also
// be refused before it runs.
func reported(err error, says string) error {
	var m *diag.Message
	if !errors.As(err, &m) {
		return fmt.Errorf("got %v, want the watchdog's report", err)
	}
	if m.Code == "program" && strings.Contains(m.Text, "message") {
		return nil
	}
	for _, n := range m.Notes {
		if strings.Contains(n.Text, says) && m.Code == "deadlock" {
			return nil
		}
	}
	return fmt.Errorf("got %v (code %s, notes %v), want a note that %q", err, m.Code, m.Notes, says)
}

// afterwards runs a right program on the same devices.
func afterwards(lib *cuda.Library, set []int32) (values int64, err error) {
	src := source{name: "allreduce_one_step", args: map[string]string{"ranks": "2", "inplace": "false", "protocol": "LL"}}
	p, err := src.program()
	if err != nil {
		return 0, err
	}
	err = on(lib, p, cuda.CommOptions{Devices: set, Watchdog: patience}, func(x *cuda.Program) (err error) {
		values, err = check(x, cuda.Options{Bytes: 4096}, false)
		return err
	})
	return values, err
}

// TestGPUWrong runs programs that make mistakes: an addition left out, and a result
// that lands one chunk beside its place; in one the thread blocks wait for each other.
func TestGPUWrong(t *testing.T) {
	lib := library(t)
	p := newParts(t, "wrong")
	for _, set := range sets(devices(t, lib)) {
		for _, protocol := range []string{"Simple", "LL", "LL128"} {
			ring := source{name: "allreduce_ring", args: map[string]string{"ranks": "3", "inplace": "false", "protocol": protocol}}
			waits := source{name: "allreduce_hierarchical", args: map[string]string{"nodes": "2", "gpus": "2", "inplace": "false", "protocol": protocol}}
			for _, c := range []struct {
				kind string
				src  source
			}{{"no addition", ring}, {"wrong place", ring}, {"no addition", waits}} {
				p.do(fmt.Sprintf("%s with %v on %s", c.kind, c.src, list(set)), func() (int64, error) {
					prog, err := c.src.program()
					if err != nil {
						return 0, err
					}
					if !spoil(prog, c.kind) {
						return 0, errors.New("there was no step to spoil")
					}
					err = on(lib, prog, cuda.CommOptions{Devices: set, Watchdog: patience}, func(x *cuda.Program) error {
						_, err := check(x, cuda.Options{Bytes: 3 << 10}, false)
						if err == nil || !strings.Contains(err.Error(), "elements are wrong") {
							return fmt.Errorf("got %v, want wrong elements", err)
						}
						return nil
					})
					return 0, err
				})
			}
		}
	}
}

// spoil changes one step of a program.
func spoil(p *ir.Program, kind string) bool {
	for t := range p.GPUs[1].TBs {
		steps := p.GPUs[1].TBs[t].Steps
		for s := range steps {
			switch st := &steps[s]; {
			case kind == "no addition" && (st.Kind == ir.RecvReduceCopySend || st.Kind == ir.RecvReduceSend):
				st.Kind, st.Src = ir.RecvCopySend, ir.NoPlace
				st.Dst = ir.Place{Buf: ir.Output}
				return true
			case kind == "wrong place" && st.Kind == ir.Recv && st.Dst.Buf == ir.Output:
				st.Dst.Index = (st.Dst.Index + 1) % 3
				return true
			}
		}
	}
	return false
}

// TestGPUSpread is a spread of small runs for tools that slow everything down.
func TestGPUSpread(t *testing.T) {
	lib := library(t)
	p := newParts(t, "spread")
	set := devices(t, lib)
	sources := mixedSources(3)
	if onHost(lib) {
		sources = sources[:2]
	}
	kinds := kinds()
	for i, src := range sources {
		k := kinds[5*i%len(kinds)]
		p.do(fmt.Sprintf("%v on %s, %v %v", src, list(set), k.d, k.op), func() (values int64, err error) {
			prog, err := src.program()
			if err != nil {
				return 0, err
			}
			err = on(lib, prog, cuda.CommOptions{Devices: set, Watchdog: 3 * patience}, func(x *cuda.Program) error {
				for _, size := range []int64{8, 1000, 3 * 4096} {
					n, err := check(x, cuda.Options{Bytes: size, DType: k.d, Op: k.op, Misalign: int32(k.d.Size())}, false)
					if err != nil {
						return err
					}
					values += n
				}
				return nil
			})
			return values, err
		})
	}
}
