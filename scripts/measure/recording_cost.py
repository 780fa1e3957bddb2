#!/usr/bin/env python3
"""What recording adds to each launch: off, a bare CUPTI client with the same kinds, and bubble-report, in turn.

    recording_cost.py BUBBLE_REPORT CUPTI_INCLUDE CUDA_INCLUDE [REPETITIONS [NAME=JSON ...]]

NAME=JSON measures another setting of the recorder beside the default, such as small='{"device_buffer_bytes": 3355443}'.

Builds bare_inject.c against the libcupti that `bubble-report doctor` finds, runs every workload below in a process of
its own for each mode, interleaved, and prints medians, spread and ratios as a Markdown table. Needs a GPU.
"""

import json, os, pathlib, statistics, subprocess, sys, tempfile

if len(sys.argv) < 4 or {"-h", "--help"} & set(sys.argv):
    sys.exit(__doc__)
program, cupti_include, cuda_include = sys.argv[1:4]
repetitions = int(sys.argv[4]) if len(sys.argv) > 4 else 9
here = pathlib.Path(__file__).resolve().parent
scratch = pathlib.Path(tempfile.mkdtemp())

found = json.loads(subprocess.run([program, "doctor", "--format", "json"], capture_output=True, check=True).stdout)
recorder = found["recording"]
if recorder["error"]:
    sys.exit(recorder["error"])
library = pathlib.Path(recorder["library"])
bare = scratch / "libbare_inject.so"
subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{cupti_include}", f"-I{cuda_include}", str(here / "bare_inject.c"),
                str(library), f"-Wl,-rpath,{library.parent}", "-o", str(bare)], check=True)

# name, workload, variant, options, launches (calls that submit work) in the measured part
WORKLOADS = [
    ("launch loop, one kernel each", "scalar-readback", "none",
     {"kernels-per-iteration": 1, "kernel-steps": 1, "size": 256, "iterations": 20000}, 20000),
    ("one copy read back per 4 kernels", "scalar-readback", "sync",
     {"kernels-per-iteration": 4, "iterations": 2000}, 10000),
    ("long kernels, no waiting", "scalar-readback", "none",
     {"kernels-per-iteration": 4, "kernel-steps": 20000, "iterations": 500}, 2000),
    ("graph of 10 iterations of 4 kernels", "scalar-readback", "graph",
     {"kernels-per-iteration": 4, "iterations": 2000}, 8000),
]
# What the recorder is asked for; further entries are measured beside the first.
CONFIGS = {"bubble-report": {"events": True}}
for extra in sys.argv[5:]:
    name, text = extra.split("=", 1)
    CONFIGS[name] = {"events": True} | json.loads(text)
MODES = ["off", "bare", *CONFIGS]


def wall(workload, variant, options, mode, number):
    spec = {"workload": workload, "variant": variant, "options": {name: str(value) for name, value in options.items()}}
    recording = None
    environment = dict(os.environ)
    if mode in CONFIGS:
        recording = {"spool": str(scratch / f"{number}.bubcap"), "config": CONFIGS[mode]}
    if mode == "bare":
        environment["CUDA_INJECTION64_PATH"] = str(bare)
        environment["BARE_KINDS"] = ",".join(map(str, recorder["kinds"]))
    request = json.dumps({"repeat": {"spec": spec, "recording": recording}})
    answer = subprocess.run([program, "child"], input=request.encode(), capture_output=True, env=environment)
    # Libraries may print too; the reply has a line of its own.
    marked = [line for line in answer.stdout.split(b"\n") if line.startswith(b"bubblescope-reply: ")]
    if not marked:
        sys.exit(f"{workload} {variant} {mode}: no reply: {answer}")
    reply = json.loads(marked[-1].split(b" ", 1)[1])
    if "done" not in reply:
        sys.exit(f"{workload} {variant} {mode}: {reply}")
    if recording:
        os.remove(recording["spool"])
    return reply["done"]["wall_ns"]


print(f"CUPTI {recorder['version']}, kinds {recorder['kinds']}, {repetitions} repetitions of each, in turn.\n")
print("| work | mode | ns per launch, median (least to greatest) | added | against off | against bare |")
print("|---|---|---|---|---|---|")
for name, workload, variant, options, launches in WORKLOADS:
    walls = {mode: [] for mode in MODES}
    for repetition in range(repetitions):
        order = MODES[repetition % len(MODES):] + MODES[:repetition % len(MODES)]
        for mode in order:
            walls[mode].append(wall(workload, variant, options, mode, repetition) / launches)
    middle = {mode: statistics.median(values) for mode, values in walls.items()}
    for mode in MODES:
        values = walls[mode]
        added = "" if mode == "off" else f"{middle[mode] - middle['off']:+.0f}"
        pairs = statistics.median(ours / theirs for ours, theirs in zip(values, walls["bare"]))
        against_bare = f"{middle[mode] / middle['bare']:.3f} (paired median {pairs:.3f})" if mode in CONFIGS else ""
        print(f"| {name} | {mode} | {middle[mode]:.0f} ({min(values):.0f} to {max(values):.0f}) | {added} | "
              f"{middle[mode] / middle['off']:.3f} | {against_bare} |", flush=True)
