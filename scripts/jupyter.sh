#!/bin/sh
# Prints the path of a Python that has Jupyter's own client, for the test of the
# kernel, and makes it in .cache if there is none. Exit code 3 if it can't.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
client=jupyter_client==8.10.0
venv=$root/.cache/jupyter
python=$venv/bin/python
if [ -x "$python" ] && "$python" -c 'import jupyter_client' 2>/dev/null; then
	echo "$python"
	exit 0
fi
if ! command -v python3 >/dev/null; then
	echo "scripts/jupyter.sh: there is no python3" >&2
	exit 3
fi
echo "scripts/jupyter.sh: installing $client in $venv" >&2
rm -rf "$venv"
if ! { python3 -m venv "$venv" && "$python" -m pip install --quiet --disable-pip-version-check "$client"; } >&2; then
	rm -rf "$venv"
	echo "scripts/jupyter.sh: $client can't be installed" >&2
	exit 3
fi
echo "$python"
