# shellcheck shell=bash

# The function with which tests/runtime.sh, tests/mpich-cma.sh and tests/openmpi.sh run the same cases
# in two ways and compare them. These scripts source this file. They must define `fail`, `step`,
# $target, and a function `run_cases`, which gets a label as its first argument. The label says in which of the two
# ways cases are run. `run_cases` passes its other arguments on to a script that takes --results,
# --list and --times as run.py does.

# Makes sure that mpi4py's tests are there, with an interpreter for the family $1 (mpich or openmpi).
need_mpi4py() {
    local hosts=$target/ddtc-hosts
    [ -x "$hosts/$1/bin/python" ] && compgen -G "$hosts/mpi4py-*/test/main.py" >/dev/null ||
        fail "$hosts has not mpi4py for $1, or not mpi4py's tests: ./test.sh mpi4py installs both"
}

# Runs cases with the label $2 and with the label $3, and compares the results: judge_both RESULTS
# LABEL LABEL TITLE [ARGUMENT..]. The arguments choose the cases. Cases that pass with one label only
# are run five more times with both. The function fails if a case then fails more often with the
# second label. If an earlier run was interrupted, the function continues it.
judge_both() {
    local results=$1 first=$2 second=$3 title=$4 label times compare
    compare=$(dirname "${BASH_SOURCE[0]}")/compare.py
    shift 4
    for label in "$first" "$second"; do
        step "$title: $label"
        run_cases "$label" --results "$results" "$@"
    done
    python3 "$compare" "$results" "$first" "$second" --differing "$results.differing"
    if [ -s "$results.differing" ]; then
        step "five more runs of the cases whose verdicts differ"
        for times in 2 3 4 5 6; do
            for label in "$first" "$second"; do
                run_cases "$label" --results "$results" --list "$results.differing" --times "$times"
            done
        done
    fi
    python3 "$compare" "$results" "$first" "$second" --title "$title"
}
