// Package starlib is the language: it runs a Starlark script and hands back the
// programs that the script traced, the parameters it declared and everything
// that went wrong, with positions.
//
// It owns the names a script sees. One table of signatures (the table_*.go
// files) describes every function and method: argument binding, error texts,
// help and the language reference (Reference) all come from it. It also owns
// `with` (masked in the text column for column, then lowered on the syntax
// tree), load(), the step limit and cancellation.
//
// Over its border come a script's text and Options; out go a *Script holding
// ir.ChunkDAGs and ir.OneTraces, and errors that are diag.List or *diag.Message. What reaches
// further than tracing (compiling, checking, running, cluster descriptions) is
// asked of a Host that the command fills in.
//
// starlib imports trace, ir, diag and go.starlark.net. It must not import the
// compiler, the checker, the runtimes or viz, and it prints nothing.
package starlib
