// Package viz turns the forms of a program into pictures and text: pure
// functions from a form to bytes. Nothing here computes a property of a program
// that anything else relies on; what it shows it takes from ir.
//
// A Picture is a stage of a program as nodes in lanes and edges of several kinds,
// made by one function a stage:
//
//	Chunks(d)                  operations on chunks, true and false dependencies
//	Instructions(d, stage)     instructions before or after fusion
//	Schedule(p)                steps on thread blocks, what they wait for, messages
//	Connections(p)             ranks, links, channels and what goes over them
//	Run(p, events)             a run, by the clock
//
// p.OfRank(r) is the part of it that a rank sees. Each picture can be written in
// each form:
//
//	WriteText(w, p, terminal)  for a terminal of some width, with colors or without
//	WriteDOT(w, p)             for Graphviz
//	WriteSVG(w, p, view)       lanes by rank, or layers
//	WriteHTML(w, page)         one page with all stages, which needs nothing else
//
// and Timeline writes a run for viewers of Chrome's trace format.
//
// Forms cross the border inwards, text outwards. viz imports ir, internal/diag
// and lipgloss only, and never prints. The same input gives the same bytes.
package viz
