// Package proof holds the evidence that the checker is right: tests that judge the
// same programs in two other ways and demand the same verdict.
//
//   - The explorer runs small programs in every interleaving that can make a
//     difference: dynamic partial-order reduction with sleep sets, on a machine of
//     its own (machine, reduce, explore); with LL and LL128 steps come apart into
//     what can happen by itself at each of their places (split). An unreduced search
//     shows on a sample that the reduction loses nothing (whole).
//   - The judge decides large programs from the full reachability closure of their
//     chunks, or of what happens to each with LL and LL128, kept as bitsets, and one
//     symbolic run (closure, judge).
//   - Both use the same plain reading of the structural rules (rules) and say what
//     they find in the same words (verdict).
//   - Mutants are programs of the library and real files with a single edit (draft,
//     mutate, sources, mutants). Random programs are made of whole transfers, of
//     messages that come back to another thread block, or compiled, damaged or not
//     (raw, trip, random).
//   - Programs of protocol Direct have a judge that only runs them, in random order
//     and with single moves held up (meet, direct); compiled ones have to hold by it
//     and to run (direct_compiled, direct_run).
//   - The tests are tested in turn: verdicts made by hand (oracles, order), and a list of
//     mistakes in the checker with each of which they must fail (teeth).
//
// All of it is tests, apart from this file: nothing imports the package, and with
// the checker it shares ir alone. Settings from the environment, all of them
// numbers:
//
//	MSCCLSH_PROGRAMS  random programs to compare (3000)
//	MSCCLSH_SEED      the first one's seed, to have a failure again alone (1)
//	MSCCLSH_TEETH     1 to see these tests fail on mistakes made in the checker (0)
//	MSCCLSH_MUTANTS   most mutants of one program, 0 for all (8)
package proof
