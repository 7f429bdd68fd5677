#!/usr/bin/env bash
# ./run mutants [NAME…]: breaks one rule after the other, on purpose, and looks whether the test that
# guards it fails. tests/mutants.txt has a line for each: name | test executable | filter | rule.
#
# One build has them all; the variable REPRISE_MUTATE chooses. A filter has to pass first where
# nothing is broken. Last line: how many there are and how many were killed; 1 if one survived.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

list=$root/tests/mutants.txt
patience=60  # seconds; a test that hangs has noticed, too

names=() executables=() filters=() rules=() waiting=()

trimmed() {
  local text=$1
  text=${text#"${text%%[! ]*}"}
  printf '%s' "${text%"${text##*[! ]}"}"
}

chosen() {
  local name
  (($# > 1)) || return 0
  for name in "${@:2}"; do
    [[ $name == "$1" ]] && return 0
  done
  return 1
}

read_list() {
  local name executable filter rule
  while IFS='|' read -r name executable filter rule; do
    name=$(trimmed "$name")
    [[ -z $name || $name == \#* ]] && continue
    chosen "$name" "$@" || continue
    executable=$(trimmed "$executable")
    if [[ $executable == - ]]; then
      waiting+=("$name")
      continue
    fi
    names+=("$name") executables+=("$executable")
    filters+=("$(trimmed "$filter")") rules+=("$(trimmed "$rule")")
  done <"$list"
}

# output_of EXECUTABLE FILTER [MUTANT]: runs it; its exit status is the test's.
output_of() {
  local program
  program=$(find "$root/build/mutants/tests" -name "$1" -type f -perm -u+x | head -n 1)
  REPRISE_MUTATE=${3-} timeout "$patience" "$program" --gtest_filter="$2" --gtest_brief=1 2>&1
}

main() {
  local name
  read_list "$@"
  for name in "$@"; do
    [[ " ${names[*]} ${waiting[*]} " == *" $name "* ]] || fail "no mutant '$name' in tests/mutants.txt"
  done
  ((${#names[@]})) || fail "no test guards ${waiting[*]} yet; tests/mutants.txt says what it needs"
  need "${build_packages[@]}"
  need_arrow
  mapfile -t programs < <(printf '%s\n' "${executables[@]}" | LC_ALL=C sort -u)
  build mutants "${programs[@]}" || exit 1

  local i output status killed=0 total=${#names[@]}
  local -A sound=()
  for i in "${!names[@]}"; do
    local guard="${executables[i]} ${filters[i]}"
    printf '[%2d/%d] %s: ' $((i + 1)) "$total" "${names[i]}"
    if [[ ! -v sound[$guard] ]]; then
      # Nothing is said by a test that fails anyway, was skipped, or is not there.
      if ! output=$(output_of "${executables[i]}" "${filters[i]}") ||
        [[ ! $output =~ 'PASSED  ] '[1-9] ]]; then
        printf 'NO GUARD\n%s\n' "$output"
        say "with no rule broken, $guard does not pass"
        exit 1
      fi
      sound[$guard]=1
    fi
    status=0
    output=$(output_of "${executables[i]}" "${filters[i]}" "${names[i]}") || status=$?
    if ((status != 0)); then
      killed=$((killed + 1))
      printf 'killed by %s\n' "${filters[i]}"
    else
      printf 'SURVIVED %s, which guards: %s\n' "${filters[i]}" "${rules[i]}"
    fi
  done
  ((${#waiting[@]} == 0)) || printf '%d wait for their test: %s\n' "${#waiting[@]}" "${waiting[*]}"
  printf '%d mutants, %d killed\n' "$total" "$killed"
  ((killed == total))
}

main "$@"
