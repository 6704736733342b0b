// Package endtoend holds the test of the whole way: random programs are traced,
// compiled for every target, judged by the checker, written and read back, and
// run on real data, whose outcome must be what an independent computation says.
//
// It has no code of its own, its test imports what it needs, and nothing imports
// it. MSCCLSH_PROGRAMS sets how many programs are tried and MSCCLSH_SEED the first
// one, so that a failure can be had again alone:
//
//	MSCCLSH_SEED=4711 MSCCLSH_PROGRAMS=1 go test ./internal/endtoend
//
// It also runs Python scripts in the style of MSCCL++'s, and with MSCCLSH_MSCCLPP
// naming a checkout of microsoft/mscclpp that project's own, beside the plans that
// its compiler makes of them; docs/python.md. BenchmarkOneSidedScript measures the
// way from such a script to its plan; docs/onepasses.md.
package endtoend
