# Sourced by ./run, scripts/gpu_gate.sh and .ci/run: installing what is missing, and building.
#
# Quick and silent when nothing is missing: some file tests and one dry run of ninja. Whatever is
# printed goes to stderr, so that the stdout of `./run decode --json` is the JSON alone.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

build_packages=(g++ cmake ninja-build libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev
  librapidcheck-dev libpng-dev zlib1g-dev)

# What sinks of records are built with and tested against; the build is whole without them.
sink_packages=(libcpp-httplib-dev clickhouse-server)

say() { printf 'run: %s\n' "$*" >&2; }

# Wrong usage, or a machine that lacks something: one clear line.
fail() {
  say "$*"
  exit 2
}

header() { [[ -e /usr/include/$1 || -e /usr/local/include/$1 ]]; }

# A package is there when what we use of it is there, whoever installed it.
present() {
  case $1 in
    g++ | cmake | clang-format-16 | clang-tidy-16) command -v "$1" ;;
    ninja-build) command -v ninja ;;
    clang-16) command -v clang++-16 ;;
    libclang-rt-16-dev) compgen -G '/usr/lib/llvm-16/lib/clang/16*/lib/linux/libclang_rt.fuzzer-*' ;;
    libfmt-dev) header fmt/core.h ;;
    libcli11-dev) header CLI/CLI.hpp ;;
    nlohmann-json3-dev) header nlohmann/json.hpp ;;
    libgtest-dev) header gtest/gtest.h ;;
    librapidcheck-dev) header rapidcheck.h ;;
    libpng-dev) header png.h ;;
    zlib1g-dev) header zlib.h ;;
    libcpp-httplib-dev) header httplib.h ;;
    clickhouse-server) command -v clickhouse-server ;;
    python3-pip) python3 -m pip --version 2>/dev/null ;;
    dataset-fashion-mnist) [[ -e /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ]] ;;
    *) false ;;
  esac >/dev/null
}

# need PACKAGE…: installs those that are missing, or says what to type and stops.
need() {
  local package missing=() as_root=()
  for package in "$@"; do
    present "$package" || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null ||
    fail "missing (Debian's names): ${missing[*]}; install them and run this again"
  local line="sh -c 'apt-get update && apt-get install -y ${missing[*]}'"
  if ((EUID != 0)); then
    sudo -n true 2>/dev/null || fail "packages are missing; type: sudo $line"
    as_root=(sudo -n)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
  say "installing ${missing[*]}"
  {
    "${as_root[@]}" update && "${as_root[@]}" install -y --no-install-recommends "${missing[@]}"
  } </dev/null >&2 || fail "apt-get failed; to see why, type as root: $line"
}

# need_arrow: Arrow C++, which comes with Python's pyarrow. Where it cannot be had, that is said, and
# run directories are neither built nor tested.
need_arrow() {
  if python3 -c 'import pyarrow' 2>/dev/null; then return 0; fi
  need python3-pip
  say "installing pyarrow with pip"
  # Newer pips leave a system's own folder alone unless they are told.
  python3 -m pip install --quiet pyarrow >&2 ||
    python3 -m pip install --quiet --break-system-packages pyarrow >&2 ||
    say "pip could not install pyarrow: no run directories; to see why, type: python3 -m pip install pyarrow"
}

# configure PRESET: once, and again from nothing when REPRISE_CMAKE_FLAGS is not what it was.
configure() {
  local dir=$root/build/$1 flags=${REPRISE_CMAKE_FLAGS-} fresh=()
  if [[ -e $dir/build.ninja ]]; then
    [[ $(cat "$dir/cmake_flags" 2>/dev/null) == "$flags" ]] && return 0
    rm "$dir/build.ninja"  # should this configuration fail, the next call starts anew too
    fresh=(--fresh)
  fi
  # shellcheck disable=SC2086  # several flags in one variable
  (cd "$root" && cmake --preset "$1" "${fresh[@]}" $flags) >&2 || return 1
  printf '%s\n' "$flags" >"$dir/cmake_flags"
}

# build PRESET [TARGET…]: ninja is first asked what it would do, so that "nothing" is said by silence.
build() {
  local dir=$root/build/$1
  configure "$1" || return 1
  shift
  [[ $(ninja -C "$dir" -n "$@" 2>/dev/null) == *'no work to do.' ]] || ninja -C "$dir" "$@" >&2
}

# Runs the tests of a preset; ctest's own summary is the last thing printed.
run_tests() {
  local preset=$1 wrap=()
  shift
  # The thread sanitizer finds its shadow memory taken where addresses are randomised widely.
  if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then wrap=(setarch -R); fi
  (cd "$root" && "${wrap[@]}" ctest --preset "$preset" --no-tests=error -j "$jobs" "$@")
}

sources() {
  find "$root"/{reprise,workloads,scenarios,bench,apps,examples,tests} -type f \
    \( -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' \) | LC_ALL=C sort
}
