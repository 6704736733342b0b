#!/bin/sh
# Prints the path of a Chromium for the tests of the HTML page, and installs
# Debian's package if there is none. Exit code 3 if it can't.
set -eu
find_browser() {
	if [ -n "${MSCCLSH_CHROMIUM:-}" ]; then
		command -v "$MSCCLSH_CHROMIUM" && return
	fi
	for name in chromium chromium-browser google-chrome; do
		command -v "$name" && return
	done
	return 1
}
if find_browser; then
	exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
	echo "scripts/browser.sh: there is no chromium, and no apt-get that may install it" >&2
	exit 3
fi
echo "scripts/browser.sh: installing Debian's chromium" >&2
if ! { apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1; then
	echo "scripts/browser.sh: there is no chromium, and apt-get can't install it" >&2
	exit 3
fi
find_browser || {
	echo "scripts/browser.sh: apt-get installed a chromium that can't be found" >&2
	exit 3
}
