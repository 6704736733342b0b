// Command mscclsh compiles, checks and runs collective communication programs.
//
// It owns what a user of the command line sees: the tables of commands and
// flags (from which help, completion and docs/cli.md come), the Session that
// carries out what they ask, reports, files written, exit codes. It is the only
// place that touches os.Args, the environment, standard output and signals, and
// the only one that wires the other packages together; nothing imports it.
//
// Session has no terminal in it: whoever drives it hands it writers.
package main
