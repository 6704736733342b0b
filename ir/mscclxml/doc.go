// Package mscclxml writes ir.Programs as MSCCL XML and reads them back: one
// dialect for each target, with every attribute that any of its readers asks for,
// and with the limits of the target's runtime enforced before the first byte.
//
// The runtimes read XML with a tokenizer of their own, not with an XML parser:
// one space between attributes, no tab, no prolog, double quotes, no escapes.
// The writer keeps to what they and real XML parsers both accept. The plain
// reading takes everything whose meaning is unambiguous; the others do as a
// runtime does, from the tokenizer to the lowering of steps. docs/formats.md
// describes dialects and readings and where each limit comes from.
//
// Reading goes from text to a document (scan.go, ncclscan.go), where every
// element stands with its offset, from there to steps (plain.go, runtime.go,
// runtimelower.go, build.go), and last to a collective, modes and a root
// (infer.go, copies.go). Positions of steps are those in the file.
//
// A *ir.Program crosses the border in both directions, bytes and *diag.Message
// too; whether an unnamed collective is right is asked of the caller
// (ReadOptions.Holds). mscclxml imports ir and internal/diag only.
package mscclxml
