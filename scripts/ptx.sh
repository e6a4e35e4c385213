#!/usr/bin/env bash
# ptx.sh [-check]: compiles cuda/kernels to cuda/ptx with NVIDIA's run-time compiler (version 11.8 from its Python wheel; no GPU, no
# driver) and assembles the result for every architecture. A spill of registers up to compute capability 9.0 is an error.
# With -check nothing is written, and code that is not what the sources give is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${RUBICON_CUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rubicon/cuda}
mkdir -p "$cache"
wheel() { # NAME==VERSION FOLDER
	[ -d "$cache/$2" ] && return
	python3 -m pip download --quiet --no-deps --dest "$cache/wheels" "$1"
	rm -rf "$cache/$2.part"
	python3 -m zipfile -e "$cache"/wheels/"$(echo "${1%%==*}" | tr - _)"-"${1##*==}"-*.whl "$cache/$2.part"
	mv "$cache/$2.part" "$cache/$2"
}
wheel nvidia-cuda-nvrtc-cu11==11.8.89 nvrtc
wheel nvidia-cuda-nvcc-cu12==12.9.86 nvcc
ptxas=$cache/nvcc/nvidia/cuda_nvcc/bin/ptxas
chmod +x "$ptxas"
text=$(mktemp -d)
trap 'rm -rf "$text"' EXIT
CGO_ENABLED=0 go run ./cuda/ptxgen -nvrtc "$cache"/nvrtc/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2 -text "$text" "$@"
for ptx in "$text"/*.ptx; do
	for arch in sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
		"$ptxas" -v -arch="$arch" "$ptx" -o /dev/null 2>"$text/log" || { cat "$text/log"; exit 1; }
		grep 'spill stores' "$text/log" | grep -v ' 0 bytes spill stores' >"$text/spills" || continue
		echo "$(basename "$ptx") on $arch spills registers: $(paste -sd'|' "$text/spills")"
		case $arch in sm_100 | sm_120) ;; *) exit 1 ;; esac
	done
done
echo "$(ls "$text"/*.ptx | wc -l) files of kernels assemble for six architectures"
