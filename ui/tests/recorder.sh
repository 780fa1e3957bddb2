#!/bin/sh
# Stands in for `bubble-report record -o FILE -- COMMAND`: says what it was asked for and gives a recording.
shift 2
output=$1
shift 2
[ "$1" = fail ] && exit 7
echo "recording into $output: $*"
cp "$(dirname "$0")/../../tests/fixtures/scalar-readback/kernels-1/graph.bubcap" "$output"
