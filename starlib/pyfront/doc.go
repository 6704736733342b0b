// Package pyfront runs the Python scripts that users have for msccl-tools and for
// MSCCL++'s DSL, with their own arguments.
//
// It owns a reader of the part of Python that such scripts are written in. It
// makes Starlark's syntax tree out of the text, node by node at the text's own
// lines and columns, and lowers what Starlark lacks: with, class, assert, raise,
// is, **, f-strings, chained comparisons and assignments, imports. What is beyond
// that is refused with the construct's name and its position. It also owns the
// modules that such a script imports: argparse and others of Python's, msccl's with
// its Collective base class, and mscclpp's, whose names are the language's own.
//
// Over its border come a script and its arguments; out goes a *starlib.Script.
// The meaning of programs is starlib's, which has a Frontend for the few places
// where msccl-tools names locations differently.
//
// pyfront imports starlib, trace's and ir's nouns, diag and go.starlark.net. It
// must not import the compiler, the checker or the runtimes, and it prints
// nothing.
package pyfront
