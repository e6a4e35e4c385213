#!/usr/bin/env bash
# cuda-gorgonia.sh: builds the driver on gorgonia.org/cu (cuda/gorgonia, tag gorgonia_cu) with CUDA 12.9's headers from their
# Python wheel, links it with a libcuda of the project's fake and of stubs for all that the headers declare, and runs its tests
# with that. Needs gcc, g++ and Python; no GPU, no driver.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${RUBICON_CUDA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rubicon/cuda}
mkdir -p "$cache"
if [ ! -d "$cache/cudart" ]; then
	python3 -m pip download --quiet --no-deps --dest "$cache/wheels" nvidia-cuda-runtime-cu12==12.9.79
	rm -rf "$cache/cudart.part"
	python3 -m zipfile -e "$cache"/wheels/nvidia_cuda_runtime_cu12-12.9.79-*.whl "$cache/cudart.part"
	mv "$cache/cudart.part" "$cache/cudart"
fi
include=$cache/cudart/nvidia/cuda_runtime/include
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Every function of the header, under the name that its macros give it, is a weak symbol that fails with CUDA_ERROR_NO_DEVICE.
echo '#include <cuda.h>' | gcc -E -P -I"$include" - | grep -oE '\bcu[A-Z][A-Za-z0-9_]*[[:space:]]*\(' | tr -d '( ' | sort -u |
	sed 's/.*/__attribute__((weak)) int &(void) { return 100; }/' >"$work/stubs.c"
gcc -c -fPIC -o "$work/stubs.o" "$work/stubs.c"
LINK="$work/stubs.o -Wl,-soname,libcuda.so.1" cuda/fakegpu/lib/build.sh "$work/libcuda.so.1"
ln -s libcuda.so.1 "$work/libcuda.so"

export CGO_ENABLED=1 CGO_CFLAGS="-I$include" CGO_LDFLAGS="-L$work" LD_LIBRARY_PATH="$work" RUBICON_CUBLAS="$work/libcuda.so.1"
go vet -tags gorgonia_cu ./cuda/gorgonia ./cmd/rubicon
go test -count=1 -tags gorgonia_cu ./cuda/gorgonia
go build -tags gorgonia_cu -o "$work/rubicon" ./cmd/rubicon
readelf -d "$work/rubicon" | grep -q 'NEEDED.*libcuda.so.1' || { echo "rubicon is not linked with libcuda"; exit 1; }
"$work/rubicon" version
