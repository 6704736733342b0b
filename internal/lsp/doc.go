// Package lsp is the language server: it speaks the Language Server Protocol over
// a pair of streams and knows scripts as far as an editor asks about them.
//
// It owns the protocol (rpc frames messages, protocol has their shapes, server
// dispatches them), the open documents (text, sync), the runs that find what is
// wrong with them (diagnose), and what it knows of a text that may not parse (lex,
// tree, infer), from which hover, complete, define and symbols answer. Everything
// said about the language's functions comes from the signature table of starlib.
//
// What reaches further (running a script, compiling and checking its programs) is a
// function that the command hands in with Options. Over the border come bytes; the
// package touches no file but those that scripts load, and the folder into which it
// writes the library's scripts so that an editor can show them.
//
// lsp imports starlib, diag and go.starlark.net. It must not import the command,
// the compiler, the checker or a runtime.
package lsp
