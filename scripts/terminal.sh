#!/bin/sh
# scripts/terminal.sh: prints the path of tmux, the terminal that the tests of the
# shell type into; installs Debian's package first if it isn't there. Exit code 3:
# it can't be had here.
set -eu
if ! command -v tmux >/dev/null 2>&1; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "terminal.sh: tmux isn't installed; as root, apt-get install tmux does it" >&2
		exit 3
	fi
	echo "terminal.sh: installing tmux" >&2
	if ! { DEBIAN_FRONTEND=noninteractive apt-get install -y -q tmux ||
		{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q tmux; }; } >&2; then
		echo "terminal.sh: apt-get can't install tmux" >&2
		exit 3
	fi
fi
command -v tmux
