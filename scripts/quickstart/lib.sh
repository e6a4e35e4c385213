# What check-rare.sh and check-amaris.sh share. They set dir, a folder for runs, and source this in the project's root.
mkdir -p "$dir"
go build -o "$dir/rubicon" ./cmd/rubicon
go build -o "$dir/quickstart" ./scripts/quickstart

# run NAME CONFIG KEY=VALUE...: trains into $dir/NAME.
run() { "$dir/rubicon" train -c "$2" output_dir="$dir/$1" "${@:3}"; }

# score NAME FILE WHAT: one score (full, quality, gaming, ...) of the answers in a file of a run.
score() { "$dir/quickstart" -measure "$dir/$1/$2" | awk -v what="$3" '$1 == what { print $2 }'; }

# holds EXPRESSION: ends the script if it is not true.
holds() { awk "BEGIN { exit !($1) }" || { echo "not so: $1" >&2; exit 1; }; }
