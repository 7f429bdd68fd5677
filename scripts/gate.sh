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
mkdir -p "$results"/{tests,decode,sanitizer} "$programs"
tar -C "$programs" -xJf programs.tar.xz || exit 2
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

# Two have the card to themselves, since they look at how much of its memory is free; the others look
# at what they hold themselves, and run seven at a time, for 16 cores.
tests() {
  local test name
  for test in "$programs"/bin/*; do echo "${test##*/}" >>"$results/tests/list"; done
  suites_of "$programs/bin/conformance_test"
  step tests/bench_test 120 "$programs/bin/bench_test" --gtest_brief=1 \
    --gtest_output="json:$results/tests/bench_test.json"
  for test in "$programs"/bin/*; do
    name=${test##*/}
    [[ $name != conformance_test && $name != bench_test ]] || continue
    while (($(jobs -rp | wc -l) >= 7)); do wait -n; done
    step "tests/$name" 180 "$test" --gtest_brief=1 --gtest_output="json:$results/tests/$name.json" &
  done
  wait
}

# Each suite in a process of its own: a fault that loses the device spoils one rule and no other.
suites_of() {
  local test=$1 name=${1##*/} suite
  for suite in $(timeout 60 "$test" --gtest_list_tests | sed -n 's/^\([a-z][a-z0-9_]*\)\.$/\1/p'); do
    echo "$suite" >>"$results/tests/$name.parts"
    step "tests/$name.$suite" 120 "$test" --gtest_brief=1 --gtest_filter="$suite.*" \
      --gtest_output="json:$results/tests/$name.$suite.json"
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

# sanitize TOOL TEST SECONDS [CASES]: "clean", "errors", or "not run: why", into
# sanitizer/TOOL_TEST. CASES are gtest patterns of what to run, all where they are left out. Where
# GATE_SECONDS says how long the whole gate may take, it is no longer than what is left of that.
# Cases on the card only. Left out is what fails on purpose in ways that the tools report, the walks
# that fail each call in turn, ten thousand cycles of one call, and one case in which a stream must pass another that is held: under
# a tool it may queue behind it. The tools refuse some virtual machines: that is not an error.
sanitize() {
  local tool=$1 test=$2 limit=$3 said=$results/sanitizer/$1_$2
  local cases="${4-*/cuda*}-"
  # initcheck does not wait for the kernel node ahead of the first copy node of a graph: it has called
  # what stage_inputs brings unwritten, but for as much as that had brought by then (3,104 bytes of
  # 280,000; 13,952 of 6,000,004), in the source of the first of three copies and never of the
  # others. These cases compare what each launch has copied, which is new each time.
  [[ $tool != initcheck ]] || cases+='*of_every_size_whole*:*where_they_were_copied*:'
  cases+='*cycles.*:*lost_device.*:*out_of_memory.*:*on_every_stream/*'
  cases+=':*transaction*:*driver_memory*:*growth*:*budget*:*churn*:*remed*:*_case*R1[1-9]_*:*nested*'
  cases+=':*failure*'
  if ! command -v compute-sanitizer >/dev/null; then
    echo 'not run: no compute-sanitizer on PATH' >"$said"
    return
  fi
  if [[ -n ${GATE_SECONDS-} ]]; then
    local left=$((GATE_SECONDS - SECONDS - 15))
    if ((left < 10)); then
      echo 'not run: no time was left' >"$said"
      return
    fi
    ((limit < left)) || limit=$left
  fi
  step "sanitizer/$tool.$test" "$limit" compute-sanitizer --tool "$tool" --report-api-errors no \
    --error-exitcode 99 "$programs/bin/$test" --gtest_brief=1 --gtest_filter="$cases"
  case $(cat "$results/sanitizer/$tool.$test.rc") in
    0) if grep -q 'PASSED  \] [1-9]' "$results/sanitizer/$tool.$test.out"; then
      echo clean
    else
      echo 'no case ran'
    fi ;;
    124) echo "not run: not done after $limit s" ;;
    *) if grep -q 'Device not supported' "$results/sanitizer/$tool.$test".{out,log}; then
      echo 'not run: it does not support this machine'
    else
      echo errors
    fi ;;
  esac >"$said"
}

{
  facts
  tests
  runs_of_decode
  sanitize memcheck replay_test 60
  sanitize memcheck conformance_test 50
  sanitize memcheck grad_test 50 '*call_cases*/cuda*:*gradient_cases*/cuda*:*calls_of_ops*/cuda*'
  rings='*input_ring*/cuda*:*recorder_test*/cuda*:*lease_test*/cuda*'
  sanitize racecheck replay_test 40 "$rings"
  sanitize initcheck replay_test 40 "$rings"
  sanitize racecheck nn_test 50 '*replays*/cuda*:*layers*/cuda*'
  sanitize racecheck sdm_test 60 '*cuda*'
  # Reads beside a view are seen by nobody else.
  sanitize memcheck sdm_test 60 '*cuda*'
  sanitize memcheck ops_test 60 \
    '*linear*/cuda*:*layer_norm*/cuda*:*entropy*/cuda*:*squared*/cuda*:*dropout*/cuda*'
  "$programs/gate_summary" judge "$results" models/tiny-llama/golden.json "$out/gpu.json"
} 2>&1 | tee "$out/gate.log"
exit "${PIPESTATUS[0]}"
