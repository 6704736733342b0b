package main

import "github.com/mscclsh/mscclsh/ir"

// target is the runtime that a program of protocol p is compiled for. What runs here is
// native. What is written as XML, or judged alone, is for msccl, and a plan isn't bound
// by what MSCCL's runtimes can hold; but what XML has no word for is native too.
func (s *Session) target(p ir.Protocol) ir.Target {
	switch set := s.Set; {
	case set.Targeted:
		return set.Target
	case set.Emit == "plan":
		return ir.TargetPlain
	case set.Emit == "xml", set.Emit == "" && set.WritesXML:
		return ir.TargetMSCCL
	case set.Emit != "" || s.judgeOnly && s.drawing == nil:
		if p == ir.Direct && !set.DirectAsSimple || p == ir.AutoProtocol {
			return ir.TargetNative
		}
		return ir.TargetMSCCL
	}
	return ir.TargetNative
}

// fileTarget is the runtime that a program read from a file is for: native unless the
// call names another, or writes for one.
func (s *Settings) fileTarget() ir.Target {
	switch {
	case s.Targeted:
		return s.Target
	case s.Emit == "xml":
		return s.xmlTarget()
	case s.Emit == "plan":
		return ir.TargetPlain
	}
	return ir.TargetNative
}

// xmlTarget is the runtime that XML is written for.
func (s *Settings) xmlTarget() ir.Target {
	if s.Targeted {
		return s.Target
	}
	return ir.TargetMSCCL
}

// checkForm refuses to write what native programs have no file for.
func (s *Settings) checkForm() error {
	if !s.Targeted || s.Target != ir.TargetNative || s.Emit != "xml" && s.Emit != "plan" {
		return nil
	}
	if s.Emit == "plan" {
		return badCallHint("target-form", "leave --target out", "--emit plan: a plan is made of a program for target plain, not native")
	}
	return badCallHint("target-form", "--emit text has the whole program, or choose --target "+orList(xmlTargets()),
		"--emit xml: MSCCL XML can't hold all that target native may make")
}

// xmlTargets are the targets that MSCCL XML is written for.
func xmlTargets() []string {
	var names []string
	for _, name := range ir.TargetNames() {
		if name != ir.TargetNative.String() {
			names = append(names, name)
		}
	}
	return names
}

// compileSize is the size that protocol auto chooses for: the one to run on.
func (s *Session) compileSize(d *ir.ChunkDAG) (int64, error) {
	switch {
	case d.Protocol != ir.AutoProtocol:
		return 0, nil
	case s.size > 0: // of bench
		return s.size, nil
	case s.Set.Size != ir.None:
		return s.Set.Size, nil
	case s.Set.Input != "":
		return 0, badCallHint("protocol-size", "give --size too, or choose a protocol", "--input: protocol auto goes by the size, which is not known before the program is compiled")
	}
	return usualSize(d.Coll), nil
}

// usualSize is as much data as is quick to run on.
func usualSize(c *ir.Collective) int64 {
	n := int64(defaultSize)
	for n > 4096 && n*int64(c.Ranks) > defaultTotal {
		n /= 2
	}
	return n
}

// checkSlots refuses flags about slots for a program that has none.
func (s *Settings) checkSlots(p *ir.Program) error {
	for _, f := range [...]struct {
		name  string
		given bool
	}{{"slots", s.Slots > 0}, {"slot-bytes", s.SlotBytes > 0}} {
		if f.given && p.Direct() {
			return badCall("flag-unused", "--%s: messages of protocol Direct go without slots", f.name)
		}
	}
	return nil
}
