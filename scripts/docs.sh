#!/bin/sh
# scripts/docs.sh MSCCLSH: writes the pages of docs/ that the command generates.
set -eu
cd "$(dirname "$0")/.."
for page in cli language shell passes findings; do
	"$1" doc "$page" >"docs/$page.md.tmp"
	mv "docs/$page.md.tmp" "docs/$page.md"
done
