#!/bin/sh
# Stands in for `bubble-report record -o FILE -- COMMAND`: says what it was asked for and gives a recording,
# or does what goes wrong.
shift 2
output=$1
shift 2
[ "$1" = fail ] && exit 7
if [ "$1" = nothing ]; then
    # Only when a file is there, if one is named.
    until [ -z "$2" ] || [ -e "$2" ]; do sleep 0.02; done
    echo 1
    echo "bubble-report: nothing was recorded: no process started CUDA, or only with an environment that it was not given" >&2
    exit 0
fi
if [ "$1" = stubborn ]; then
    trap 'echo not yet' INT
    echo ready
    while :; do sleep 0.02; done
fi
echo "recording into $output: $*"
cp "$(dirname "$0")/../../tests/fixtures/scalar-readback/kernels-1/graph.bubcap" "$output"
