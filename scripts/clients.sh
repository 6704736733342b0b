#!/bin/sh
# scripts/clients.sh: the tests that need somebody else's program: pages in Chromium, the
# shell in tmux, the language server in Neovim, the kernel under Jupyter's client. Each
# is installed if it isn't there; what can't be installed is left out, and said.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0

# with NAME SETTING TESTS PACKAGE: runs the tests if scripts/NAME.sh finds its program.
with() {
	name=$1
	setting=$2
	if ! found=$("scripts/$name.sh"); then
		echo "clients: $name: left out, it can't be installed here"
		return
	fi
	echo "clients: $name: $found"
	env "$setting=1" scripts/go test -count=1 -timeout 15m -run "$3" "$4" || bad=1
}

with browser MSCCLSH_BROWSER 'InBrowser$' ./viz
with terminal MSCCLSH_TERMINAL '^TestTerminal' ./cmd/mscclsh
with editor MSCCLSH_EDITOR '^TestNeovim$' ./cmd/mscclsh
with jupyter MSCCLSH_JUPYTER '^TestJupyter' ./cmd/mscclsh
exit $bad
