#!/usr/bin/env python3
"""What waiting for the GPU costs: measured with `bubble-report` on a GPU, then written up anywhere.

    host_device_sync.py record BUBBLE_REPORT OUT [SECONDS [RECORDINGS]]
    host_device_sync.py write OUT DOCUMENT [PLOTS]

`record` runs every cell of the plan below in a process of its own, in rounds over the whole plan, unprofiled and
profiled, until five rounds are done or SECONDS (300) have passed, and keeps in the folder OUT two files: `walls.json`, every
wall as it was measured, and `reports.json`, what `bubble-report analyze` says of each recording. The recordings themselves are kept, compact, in the folder
RECORDINGS if one is given. `write` makes the
document, and its plots in the folder PLOTS (OUT), out of those two files and nothing else.
"""

import concurrent.futures, datetime, json, os, pathlib, platform, subprocess, sys, tempfile, time

# Steps of a kernel's inner loop for about this many microseconds. The document shows the lengths that were recorded.
STEPS = {1: 1, 3: 240, 10: 1_230, 30: 4_070, 100: 14_000, 300: 42_400, 1_000: 141_700, 10_000: 1_418_000}
SIZE = 8_192

# Kernels per iteration, and the kernel lengths measured with that many.
GRID = {1: [1, 3, 10, 30, 100, 300, 1_000, 10_000], 4: [1, 10, 100, 1_000], 12: [1, 10, 100], 40: [1, 10, 100]}
WAITS = ["none", "sync", "sync-pinned", "event"]
RECOVERY = ["async", "graph", "mapped-flag", "device-control", "persistent"]
RECOVERY_CELLS = [(1, 1), (1, 10), (1, 100), (4, 10), (12, 10)]
TIMING_CELLS = [(1, 1), (1, 10), (1, 100), (1, 1_000), (4, 10), (12, 10), (40, 10)]
PLANTED_LENGTHS = [3, 30, 300]

READ_BACK = {
    "sync": "remove=cuMemcpyDtoH",
    "sync-pinned": "remove=cuMemcpyDtoHAsync,cuStreamSynchronize",
    "event": "remove=cuMemcpyDtoHAsync,cuEventRecord,cuEventSynchronize",
    "async": "remove=cuMemcpyDtoHAsync,cuEventRecord,cuEventSynchronize",
}
BUILDING = "remove=" + ",".join([
    "cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphInstantiate",
    "cuGraphDestroy", "cuGraphExecDestroy", "cuLaunchKernel", "cuEventRecord", "cuStreamWaitEvent"])


class Plan:
    """Cells to run, in the order in which they run, and pairs of them to predict."""

    def __init__(self):
        self.cells, self.pairs = {}, []
        for kernels, lengths in GRID.items():
            for length in lengths:
                for variant in WAITS:
                    self.readback(variant, kernels, length)
                if (kernels, length) in RECOVERY_CELLS:
                    for variant in RECOVERY:
                        self.readback(variant, kernels, length)
                for variant, change in READ_BACK.items():
                    self.pair("scalar-readback", variant, "none", change, f"k{kernels}-{length}us")
        for kernels, length in TIMING_CELLS:
            for variant in ["none", "device-sync"] + (["events"] if length == 10 else []):
                self.add("timing", variant, f"k{kernels}-{length}us", {
                    "size": SIZE, "kernels-per-step": kernels, "kernel-steps": STEPS[length],
                    **repeated(kernels, length)})
            self.pair("timing", "device-sync", "none", "remove=cuCtxSynchronize", f"k{kernels}-{length}us")
            self.pair("timing", "events", "none", "remove=cuEventRecord", f"k{kernels}-{length}us")
        for length in PLANTED_LENGTHS:
            options = {"size": SIZE, "kernel-steps": STEPS[length], "short-steps": STEPS[length], **repeated(1, length)}
            for variant in ["launch-bound", "sync", "blocking-copy"]:
                self.add("planted", variant, f"{length}us", options)
            self.pair("planted", "sync", "launch-bound", "remove=cuStreamSynchronize", f"{length}us")
            self.pair("planted", "blocking-copy", "launch-bound", "remove=cuMemcpyDtoH", f"{length}us")
        # One graph for the whole run, the counterpart of launches replayed as a graph.
        for kernels, length in [(1, 1), (1, 10), (4, 10), (12, 10)]:
            iterations = repeated(kernels, length)["iterations"]
            if iterations <= 1_000:
                self.readback("graph", kernels, length, batch=iterations)
                label = f"k{kernels}-{length}us"
                self.pair("scalar-readback", "none", "graph", "graph", label, f"{label}-whole")
        for steps in [1, 100, 1_000]:
            options = {"kernel-steps": steps, "iterations": 150, "warmup": 15}
            extra = ["graph-update", "graph-rebuilt", "fused"] if steps == 100 else []
            for variant in ["sync-each", "launches", "graph"] + extra:
                self.add("graph-replay", variant, f"steps{steps}", options)
            self.pair("graph-replay", "sync-each", "launches", "remove=cuCtxSynchronize", f"steps{steps}")
            self.pair("graph-replay", "launches", "graph", "graph", f"steps{steps}")
            self.pair("graph-replay", "graph-rebuilt", "graph", BUILDING, f"steps{steps}")
        for label, variants, options in [
            ("1MiB", ["serial", "async-pageable", "async-pinned", "streams-2", "streams-4", "graph"], {}),
            ("64KiB", ["serial", "async-pageable", "async-pinned"], {"chunk-size": 16_384, "chunks": 200}),
        ]:
            for variant in variants:
                self.add("pipeline", variant, label, options)
            self.pair("pipeline", "async-pageable", "async-pinned", "pinned", label)
            self.pair("pipeline", "serial", "async-pinned", "no-sync", label)
        for variant in ["reuse", "pool", "malloc"]:
            self.add("allocation", variant, "4MiB", {"iterations": 200})
        self.pair("allocation", "malloc", "reuse", "remove=cuMemAlloc,cuMemFree", "4MiB")
        self.pair("allocation", "pool", "reuse", "remove=cuMemAllocAsync,cuMemFreeAsync", "4MiB")
        for variant in ["non-blocking", "legacy"]:
            self.add("default-stream", variant, "20us", {})
        self.pair("default-stream", "legacy", "non-blocking", "no-default-stream", "20us")

    def add(self, workload, variant, label, options):
        cell = {"workload": workload, "variant": variant, "label": label, "options": options}
        self.cells[f"{workload}/{variant}/{label}"] = cell

    def readback(self, variant, kernels, length, batch=None):
        options = {"size": SIZE, "kernels-per-iteration": kernels, "kernel-steps": STEPS[length],
                   **repeated(kernels, length)}
        label = f"k{kernels}-{length}us"
        if batch:
            options["batch"] = batch
            label += "-whole"
        self.add("scalar-readback", variant, label, options)

    def pair(self, workload, slower, faster, change, label, faster_label=None):
        slower, faster = f"{workload}/{slower}/{label}", f"{workload}/{faster}/{faster_label or label}"
        if slower in self.cells and faster in self.cells:
            self.pairs.append({"slower": slower, "faster": faster, "change": change})

    def changes(self, name):
        """What to replay from this cell's recording."""
        asked = {pair["change"]: None for pair in self.pairs if pair["slower"] == name}
        return [*asked, *(["no-sync"] if "no-sync" not in asked else [])]


def repeated(kernels, length):
    """Iterations that take about 60 ms, within what the host's reference can follow quickly."""
    iterations = 60_000 / (kernels * max(length, 3) + 20)
    iterations = max(20, min(int(iterations), 2_000, 4_000 // kernels) // 10 * 10)
    return {"iterations": iterations, "warmup": min(100, max(3, iterations // 10))}


# Recording.

REPLY = b"bubblescope-reply: "


def child(program, cell, spool):
    spec = {"workload": cell["workload"], "variant": cell["variant"],
            "options": {name: str(value) for name, value in cell["options"].items()}}
    recording = {"spool": str(spool), "config": {"events": True}} if spool else None
    request = json.dumps({"repeat": {"spec": spec, "recording": recording}})
    try:
        answer = subprocess.run([program, "child"], input=request.encode(), capture_output=True, timeout=60)
        # Libraries may print too; the reply has a line of its own.
        marked = [line for line in answer.stdout.split(b"\n") if line.startswith(REPLY)]
        reply = json.loads(marked[-1].removeprefix(REPLY) if marked else b"")
    except (subprocess.TimeoutExpired, ValueError) as error:
        return None, f"no answer: {error}"
    if "done" in reply:
        return reply["done"], None
    return None, str(reply.get("failed", {}).get("message", reply))


def analyse(program, spool, changes):
    command = [program, "analyze", str(spool), "--format", "json", "--top", "0"]
    for change in changes:
        command += ["--what-if", change]
    answer = subprocess.run(command, capture_output=True, text=True)
    try:
        return trimmed(json.loads(answer.stdout))
    except ValueError:
        return {"failed": answer.stderr.strip()[-500:]}


def trimmed(report):
    """The report without what no figure needs: single streams, histograms, texts."""
    def only(value, *names):
        return {name: value[name] for name in names if name in value}

    replay = report.get("replay") or {}
    answers = replay.get("what_if", [])
    return {
        "machine": only(report["source"].get("machine", {}), "CUPTI", "driver", "recorder"),
        "captured_on": report["source"].get("captured_on"),
        "iterations_run": (report["source"].get("workload") or {}).get("iterations"),
        "window": report["window"],
        "devices": [only(device, "name", "span_ns", "busy_ns", "compute_only_ns", "overlapped_ns", "exposed_copy_ns",
                         "idle_ns", "ops", "idle_by_root", "idle_by_segment")
                    | {"bubbles": only(device["bubbles"], "count", "p50_ns", "p95_ns", "max_ns")}
                    for device in report["devices"]],
        "sync_calls": report["sync_calls"],
        "replay": only(replay, "unchanged_error", "withheld")
        | {"what_if": [only(answer, "change", "span_ns", "gain_ns") for answer in answers]},
        "iterations": report["iterations"],
        "launches": report["launches"],
        "findings": [only(finding, "id", "severity", "recoverable_ns", "count")
                     for finding in report.get("findings") or []],
        "quality": only(report["quality"], "idle_reliable", "reasons", "dropped_records", "warnings"),
    }


def machine(program):
    def said(*command):
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
            return answer.stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            return ""

    doctor = said(program, "doctor", "--format", "json")
    processor = [line.split(":", 1)[1].strip() for line in said("cat", "/proc/cpuinfo").splitlines()
                 if line.startswith("model name")]
    query = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,persistence_mode,pstate,temperature.gpu"
    return {
        "gpu": said("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"),
        "gpu_columns": query,
        "processor": processor[0] if processor else "",
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "doctor": without_folders(json.loads(doctor)) if doctor.startswith("{") else doctor,
    }


def without_folders(value):
    """The same with every absolute path shortened to its last part: where this machine keeps things concerns nobody."""
    if isinstance(value, dict):
        return {name: without_folders(member) for name, member in value.items()}
    if isinstance(value, list):
        return [without_folders(member) for member in value]
    return pathlib.PurePath(value).name if isinstance(value, str) and value.startswith("/") else value


def keep(program, spool, folder, name):
    """A compact copy of a recording, named after its cell."""
    kept = folder / f"{name.replace('/', '_')}-{spool.stem.rsplit('-', 1)[1]}.bubcap"
    subprocess.run([program, "convert", str(spool), "-o", str(kept)], check=True, capture_output=True)


def record(program, out, seconds, recordings=None):
    program = str(pathlib.Path(program).resolve())
    for folder in filter(None, [out, recordings]):
        folder.mkdir(parents=True, exist_ok=True)
    plan, began = Plan(), time.monotonic()
    kept = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine(program),
        "cells": {name: cell | {"walls_ns": [], "profiled_walls_ns": []} for name, cell in plan.cells.items()},
    }
    reports, rounds = {}, []
    with tempfile.TemporaryDirectory() as scratch:
        spools = {}
        try:
            for profiled in [False, True, False, False, True]:
                started, whole = time.monotonic(), True
                for number, (name, cell) in enumerate(kept["cells"].items()):
                    # The first two rounds must be whole: without them there is nothing to write.
                    if len(rounds) > 1 and time.monotonic() - began > seconds:
                        whole = False
                        break
                    if "failed" in cell:
                        continue
                    spool = pathlib.Path(scratch) / f"{number}-{len(rounds)}.bubcap" if profiled else None
                    done, failed = child(program, cell, spool)
                    if failed:
                        cell["failed"] = failed
                        print(f"{name}: {failed}", file=sys.stderr, flush=True)
                        continue
                    cell["iterations"] = done["iterations"]
                    cell["profiled_walls_ns" if profiled else "walls_ns"].append(done["wall_ns"])
                    cell["answer"] = done["answer"]
                    kept["device"], kept["driver_cuda"] = done["device_name"], done["driver_version"]
                    if profiled:
                        spools.setdefault(name, []).append(spool)
                rounds.append({"profiled": profiled, "whole": whole, "seconds": round(time.monotonic() - started, 1)})
                print(f"round {len(rounds)}: {rounds[-1]}", file=sys.stderr, flush=True)
                if not whole:
                    break
        finally:
            kept["rounds"] = rounds
            kept["seconds"] = round(time.monotonic() - began, 1)
            write_rows(out / "walls.json", kept, "cells")
        # Only now, so that no analysis disturbs a measurement.
        jobs = [(name, spool) for name, all_of in spools.items() for spool in all_of]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for (name, _), report in zip(jobs, pool.map(lambda job: analyse(program, job[1], plan.changes(job[0])), jobs)):
                reports.setdefault(name, []).append(report)
            if recordings:
                list(pool.map(lambda job: keep(program, job[1], recordings, job[0]), jobs))
        write_rows(out / "reports.json", {"reports": reports}, "reports")
    failed = sum("failed" in report for some in reports.values() for report in some)
    print(f"{len(kept['cells'])} cells, {len(plan.pairs)} pairs, {len(jobs)} recordings, {failed} of them unreadable, "
          f"{time.monotonic() - began:.0f} s", file=sys.stderr)


def write_rows(path, value, rows):
    """JSON with one line for each entry of one of its members."""
    head = {name: member for name, member in value.items() if name != rows}
    lines = [json.dumps(name) + ": " + json.dumps(member) for name, member in value[rows].items()]
    text = json.dumps(head, indent=1)[:-1].rstrip()
    text += ("," if head else "") + f'\n "{rows}": {{\n  ' + ",\n  ".join(lines) + "\n }\n}\n"
    json.loads(text)
    path.write_text(text)


if __name__ == "__main__":
    if len(sys.argv) in (4, 5, 6) and sys.argv[1] == "record":
        program, out, seconds, recordings = [*sys.argv[2:], *[None] * 2][:4]
        record(program, pathlib.Path(out), float(seconds or 300), recordings and pathlib.Path(recordings))
    elif len(sys.argv) in (4, 5) and sys.argv[1] == "write":
        import host_device_sync_write

        host_device_sync_write.write(Plan(), *map(pathlib.Path, [*sys.argv[2:], sys.argv[2]][:3]))
    else:
        sys.exit(__doc__)
