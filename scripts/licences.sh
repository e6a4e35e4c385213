#!/usr/bin/env bash
# licences.sh FILE: the licences of everything that is inside the program, for a release.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
mkdir -p "$(dirname "$out")"
part() { # NAME FOLDER: its licences
	local files
	files=$(find "$2" -maxdepth 1 -type f \( -iname 'LICEN[CS]E*' -o -iname 'COPYING*' -o -iname 'NOTICE*' \) | sort)
	test -n "$files" || { echo "$1 has no licence in $2" >&2; exit 1; }
	printf '\n==== %s\n\n' "$1"
	cat $files
}
{
	echo "The program contains the following works."
	part "Go $(go env GOVERSION)" "$(go env GOROOT)"
	part "word lists and tagger" rewards/internal/english
	part "language profiles" rewards/internal/langdetect
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/rubicon | sort -u |
		while read -r path version dir; do part "$path $version" "$dir"; done
} >"$out"
