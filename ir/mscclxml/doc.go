// Package mscclxml writes ir.Programs as MSCCL XML: one dialect for each target,
// with every attribute that any of its readers asks for, and with the limits of
// the target's runtime enforced before the first byte.
//
// The runtimes read XML with a tokenizer of their own, not with an XML parser:
// one space between attributes, no tab, no prolog, double quotes, no escapes.
// The writer keeps to what they and real XML parsers both accept. docs/formats.md
// describes the dialects and where each limit comes from.
//
// A *ir.Program crosses the border inwards, bytes and *diag.Message outwards.
// mscclxml imports ir and internal/diag only.
package mscclxml
