package mscclxml

import (
	"fmt"

	"github.com/mscclsh/mscclsh/ir"
)

// parseProtocol reads a protocol that XML has.
func parseProtocol(s string) (ir.Protocol, error) {
	p, err := ir.ParseProtocol(s)
	if err != nil || p > ir.LL128 {
		return 0, fmt.Errorf("protocol: got %q, want Simple, LL or LL128", s)
	}
	return p, nil
}

// AsSimple is p with protocol Simple and the slots that target t has for it, if p is
// of protocol Direct; else p itself. The steps are the same, what they wait for is
// not: a rendezvous holds a sender back until its receiver is there, while slots
// run full at large sizes. So the caller has to judge the result anew.
func AsSimple(p *ir.Program, t ir.Target) *ir.Program {
	if !p.Direct() {
		return p
	}
	spec, mapped := *p.Spec, *p
	spec.Protocol = ir.Simple
	mapped.Spec, mapped.Transport = &spec, t.Transport(ir.Simple)
	return &mapped
}
