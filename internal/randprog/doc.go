// Package randprog makes random valid programs for tests and for the documented
// long runs: any that compiles to something wrong is a bug of what compiled it.
//
// Two families. A free program has a user-defined collective and arbitrary
// operations; what it happens to compute is what its collective expects. A known
// one implements a collective such as allreduce over random trees and detours.
// What a program computes is derived by a naive model of its own, lists of
// contributions in a map, and Generate fails when trace.Builder disagrees with it.
//
// Every choice comes from a Source, so a seed or a rapid test decides a program
// completely; smaller choices make simpler programs, which is what shrinking needs.
//
// randprog imports trace and ir. Only tests and cmd import it.
package randprog
