package mscclxml_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// allTargets are those that files are written for, with the reading of each.
var allTargets = map[ir.Target]mscclxml.Reading{ir.TargetMSCCL: mscclxml.MSCCL, ir.TargetExecutor: mscclxml.Executor,
	ir.TargetRCCL: mscclxml.RCCL, ir.TargetPlain: mscclxml.Plain, ir.TargetAstra: mscclxml.Plain}

// text is a program without its positions.
func text(t testing.TB, p *ir.Program) string {
	t.Helper()
	q := *p
	spec := *p.Spec
	spec.Positions = nil
	q.Spec = &spec
	q.GPUs = nil
	for _, g := range p.GPUs {
		h := g
		h.TBs = nil
		for _, tb := range g.TBs {
			tb.Steps = append([]ir.Step(nil), tb.Steps...)
			for s := range tb.Steps {
				tb.Steps[s].Pos = 0
			}
			h.TBs = append(h.TBs, tb)
		}
		q.GPUs = append(q.GPUs, h)
	}
	var b strings.Builder
	if err := q.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// roundTrip writes p for a target and reads it back, plainly and as the target's
// runtime; both give p again, as far as the target knows what p has, and what is
// written of that are the same bytes. It reports whether the target takes p.
func roundTrip(t testing.TB, p *ir.Program, target ir.Target) bool {
	t.Helper()
	var b bytes.Buffer
	if err := mscclxml.Write(&b, p, target); err != nil {
		return false
	}
	first := b.Bytes()
	for _, reading := range [...]mscclxml.Reading{mscclxml.Plain, allTargets[target]} {
		im, err := mscclxml.Read(bytes.NewReader(first), mscclxml.ReadOptions{File: "written.xml", Runtime: reading})
		if err != nil {
			t.Errorf("written for %s, read as %s: %v", target, reading, err)
			return true
		}
		if len(im.Programs) != 1 {
			t.Errorf("written for %s, read as %s: got %d programs", target, reading, len(im.Programs))
			return true
		}
		q := im.Programs[0]
		want := *p
		want.Transport = q.Transport // that of the target
		spec := *p.Spec
		spec.Topo = q.Topo // no file says which links there are
		want.Spec = &spec
		if diff := cmp.Diff(text(t, &want), text(t, q)); diff != "" {
			t.Errorf("written for %s, read as %s (-want +got):\n%s", target, reading, cut(diff))
		}
		b = bytes.Buffer{}
		if err := mscclxml.Write(&b, q, target); err != nil {
			t.Errorf("written for %s, read as %s, written again: %v", target, reading, err)
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Errorf("written for %s, read as %s, written again: other bytes:\n%s", target, reading, cut(cmp.Diff(string(first), b.String())))
		}
	}
	return true
}

func cut(s string) string { return s[:min(len(s), 2000)] }

// Every real file, for every target that takes it.
func TestHandedRoundTrips(t *testing.T) {
	taken := map[ir.Target]int{}
	for _, h := range handedFiles(t) {
		im, err := readFile(t, h, mscclxml.Plain)
		if err != nil {
			continue
		}
		for target := range allTargets {
			for _, p := range im.Programs {
				if roundTrip(t, p, target) {
					taken[target]++
				}
			}
		}
		if t.Failed() {
			t.Fatal(h.cols["file"])
		}
	}
	t.Log(taken)
	for target := range allTargets {
		if taken[target] == 0 {
			t.Errorf("no file was taken by target %s", target)
		}
	}
}

// What a runtime's own reading makes of a file that it takes is what the plain
// reading makes of it: same results, same verdict.
func TestHandedReadingsAgree(t *testing.T) {
	for _, h := range handedFiles(t) {
		im, err := readFile(t, h, mscclxml.Plain)
		if err != nil || strings.Contains(h.cols["peculiarities"], "elements copy") {
			continue
		}
		for _, r := range [...]mscclxml.Reading{mscclxml.MSCCL, mscclxml.Executor, mscclxml.RCCL} {
			as, err := readFile(t, h, r)
			if err != nil {
				for _, m := range diag.Messages(err) {
					if m.Code != mscclxml.CodeRefused {
						t.Errorf("%s as %s: %v", h.cols["file"], r, m)
					}
				}
				continue
			}
			for i, p := range as.Programs {
				q := *im.Programs[i]
				q.Transport, q.MinBytes, q.MaxBytes = p.Transport, p.MinBytes, p.MaxBytes
				if got, want := verdict(check(t, p)), verdict(check(t, &q)); got != want {
					t.Errorf("%s as %s: got %s, want %s", h.cols["file"], r, got, want)
				}
			}
		}
	}
}
