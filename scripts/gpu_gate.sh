#!/usr/bin/env bash
# ./run gpu-gate: builds what a GPU has to check into build/gate/carry, which can be copied to
# another machine; runs it here when a GPU answers. `--accept FILE` takes a gpu.json into docs/.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

gate=$root/build/gate
carry=$gate/carry
summary=$gate/tests/gate/gate_summary

accept() {
  build gate gate_summary || exit 1
  "$summary" accept "$1" "$("$root/scripts/tree_hash.sh")" "$root/docs" || exit
  say "docs/gpu.json and docs/gpu.md are written"
}

# What another machine needs. Programs link statically and are many, each with the same device code,
# which is compressed already: packed with a window that reaches from one program to the next they
# are a tenth of their size, and the folder stays small enough to be sent anywhere.
assemble() {
  local programs=$gate/programs test
  rm -rf "$carry" "$programs"
  mkdir -p "$carry"/{models,tests,workloads/memory} "$programs/bin"
  # Before the build: should a source change meanwhile, the record will be refused as stale.
  "$root/scripts/tree_hash.sh" >"$carry/device_code"
  build gate carried || exit 1
  while read -r test; do
    [[ -z $test ]] || strip -o "$programs/bin/${test##*/}" "$test"
  done <"$gate/carried_tests.txt"
  strip -o "$programs/reprise" "$gate/reprise"
  strip -o "$programs/gate_summary" "$summary"
  XZ_OPT="--lzma2=preset=3,dict=256MiB" tar -C "$programs" -cJf "$carry/programs.tar.xz" .
  cp "$root/scripts/gate.sh" "$carry/gate"
  cp -r "$root"/models/{tiny-llama,denoiser} "$carry/models/"
  cp "$root/workloads/memory/genesis.txt" "$carry/workloads/memory/"
  [[ ! -d $root/tests/data ]] || cp -r "$root/tests/data" "$carry/tests/"
  say "build/gate/carry is ready: $(du -sm "$carry" | cut -f 1) MiB"
}

elsewhere() {
  cat <<HOW
No GPU answers here. Copy the folder build/gate/carry to a machine with one and run there:

  carry/gate            # some five minutes; writes carry/gpu.json and carry/gate.log

Bring gpu.json back, and take it into docs/ with:

  ./run gpu-gate --accept gpu.json
HOW
}

case $#:${1-} in
  0:) ;;
  2:--accept) [[ -f $2 ]] || fail "there is no file '$2' to accept" ;;
  *) fail "gpu-gate takes --accept FILE or nothing, not '$*'" ;;
esac
need "${build_packages[@]}"
command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]] ||
  fail "gpu-gate compiles CUDA and finds no nvcc, on PATH or in /usr/local/cuda/bin"
if (($# == 2)); then
  accept "$2"
  exit
fi
assemble
if ! nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
  elsewhere
  exit
fi
"$carry/gate" "$gate" || exit 1
accept "$gate/gpu.json"
