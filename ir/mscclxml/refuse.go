package mscclxml

import "github.com/mscclsh/mscclsh/ir"

// Refuse says why Write would refuse p for target t; nil if it wouldn't.
func Refuse(p *ir.Program, t ir.Target) error {
	_, err := check(p, t)
	return err
}
