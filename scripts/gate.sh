#!/usr/bin/env bash
# ./gate [FOLDER]: on a machine with a GPU, beside what `./run gpu-gate` put together. Base tools
# only. Runs the tests and decode on the GPU, and writes gpu.json and gate.log into FOLDER (here).
# Exit 0: green; 1: not. Every command has its time limit.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(mkdir -p "${1-$here}" && cd "${1-$here}" && pwd) || exit 2
cd "$here" || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$work/results programs=$work/programs
mkdir -p "$results"/{tests,decode} "$programs"
tar -C "$programs" -xzf programs.tar.gz || exit 2
export REPRISE_SOURCE_DIR=$here   # where tests find models/ and tests/data
export REPRISE_TEST_DEVICES=cuda  # a GPU that does not answer fails the tests that need one

# step NAME SECONDS COMMAND…: stdout to $results/NAME.out, all else to NAME.log, status to NAME.rc.
step() {
  local name=$1 limit=$2 began=$SECONDS status
  shift 2
  timeout "$limit" "$@" >"$results/$name.out" 2>"$results/$name.log" </dev/null
  status=$?
  echo "$status" >"$results/$name.rc"
  printf '%-32s exit %d, %d s\n' "$name" "$status" $((SECONDS - began))
  ((status == 0)) || tail -n 60 "$results/$name.out" "$results/$name.log"
}

# decode NAME OPTION…: what each run must give is in the table of tests/gate/summary.cpp.
decode() {
  local name=$1
  shift
  step "decode/$name" 60 "$programs/reprise" run decode --device cuda:0 --model models/tiny-llama \
    --tokens 96 --json - "$@"
  mv "$results/decode/$name.out" "$results/decode/$name.json"
}

facts() {
  date -u +%Y-%m-%dT%H:%M:%SZ >"$results/date"
  cp device_code "$results/"
  timeout 60 "$programs/reprise" doctor --json - >"$results/doctor.json"
  cat "$results/doctor.json"
}

tests() {
  local test name
  for test in "$programs"/bin/*; do
    name=${test##*/}
    echo "$name" >>"$results/tests/list"
    step "tests/$name" 120 "$test" --gtest_brief=1 --gtest_output="json:$results/tests/$name.json"
  done
}

runs_of_decode() {
  local sampling=(--temperature 0.8 --top-p 0.9 --seed 7)
  decode one --prompt 'In the beginning ' --greedy
  decode one_eager --prompt 'In the beginning ' --greedy --eager
  decode default_prompts --verify
  decode golden_fp32 --weights fp32 --prompt 'In the beginning ' --prompt 'And it came to pass' \
    --prompt 'The LORD is my '
  decode sampled "${sampling[@]}"
  decode sampled_eager "${sampling[@]}" --eager
}

# Memory errors in one short test. The tool refuses some virtual machines: that is not an error.
memcheck() {
  local checked
  checked=$programs/bin/$(cat memcheck_test 2>/dev/null)
  if ! command -v compute-sanitizer >/dev/null; then
    echo 'not run: no compute-sanitizer on PATH'
  elif [[ ! -x $checked || -d $checked ]]; then
    echo 'not run: no test was chosen for it'
  else
    step memcheck 150 compute-sanitizer --tool memcheck --error-exitcode 99 "$checked" \
      --gtest_brief=1 >&2
    case $(cat "$results/memcheck.rc") in
      0) echo clean ;;
      124) echo 'not run: not done after 150 s' ;;
      *) if grep -q 'Device not supported' "$results"/memcheck.{out,log}; then
        echo 'not run: it does not support this machine'
      else
        echo errors
      fi ;;
    esac
  fi
}

{
  facts
  tests
  runs_of_decode
  memcheck >"$results/memcheck"
  "$programs/gate_summary" judge "$results" models/tiny-llama/golden.json "$out/gpu.json"
} 2>&1 | tee "$out/gate.log"
exit "${PIPESTATUS[0]}"
