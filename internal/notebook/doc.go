// Package notebook reads scripts that are divided into cells, and writes them
// with their outputs as a page.
//
// A line that begins with "# %%" starts a cell, as many editors know it; what
// follows on that line is the cell's title, its kind, and keys:
//
//	# %% [markdown]                                  comments that hold Markdown
//	# %% A title                                     code
//	# %% Exercise tags=["exercise"] demand="steps <= 4"
//
// Within code, a line "# %NAME ARGUMENTS" is a command of the shell: for the
// language it is a comment, so that the whole file stays a script. A code cell
// with the tag active-ipynb is a comment throughout: what can't stand in a script
// that is to run through, such as a mistake made on purpose. (Both conventions are
// Jupytext's, whose tools read these files.)
//
// In comes a file's text; out go cells, HTML, and errors with positions. The
// package imports nothing of this module but internal/diag, runs nothing and
// prints nothing.
package notebook
