#!/usr/bin/env python3
"""What recording with `bubble-report record` costs a program, beside a bare CUPTI client, Nsight Systems and torch.profiler.

    record_overhead.py measure OUT.json [--quick] [--budget SECONDS] [--only PART,...] [--repetitions N]
    record_overhead.py memory OUT.json [--seconds S] [--alone S] [--bare S] [--config JSON]
    record_overhead.py write FIGURES_FOLDER DOCUMENT

`measure` runs every loop in a process of its own under every condition, in turn, until each has its repetitions or the
budget is used up. Its parts: `programs` (C++ loops), `torch`, `stays` (what stays after recording has ended),
and `settings`; by `--only` also `clock` (CUPTI with another clock) and `device` (its buffers on the device). `memory` watches a program at
the highest rate for minutes, its memory and the file: for some seconds alone, recorded, and under the bare client, which
has CUPTI's own memory and nothing of ours. Both need a GPU, nvcc and bubble-report on the PATH. `write` makes the document of the figures, anywhere.
"""

import argparse, json, os, pathlib, shutil, subprocess, sys, tempfile, threading, time

import machine, spool
from machine import HERE, say

REPETITIONS = 5
# The C++ programs are short and run so many times as often: on a shared host a third of the processes meets a neighbour,
# and only the median of many says what the others have in common.
SHORT, OFTEN = 0.5, 5
# How much of a run is left out of the fit of its memory: it has its size then.
SETTLED = 30
# Between two looks at all mappings, seconds: they take a lock that whoever maps memory waits for.
LOOKS = 10
# A recording at the highest rate ends when the disk has no more than this.
LEAST_FREE = 4 << 30
MiB = 1 << 20
# What an op takes of a buffer on the device (cupti_activity.h: 3,200,000 bytes for 100,000 kernels, copies and memsets), and what all of them may.
SLOT, DEVICE_MEMORY = 32, 512 * MiB
# The size that other recorders take, where ours are smaller.
LARGE_BUFFERS = {"buffer_bytes": 8 * MiB, "buffers": 8}


def bare_environment(client, kinds, request, left_out, per_thread=1):
    """How the bare client records the same kinds with buffers as large as the recorder's, without the calls left out."""
    found = {"CUDA_INJECTION64_PATH": client, "BARE_KINDS": ",".join(map(str, kinds)), "BARE_PER_THREAD": str(per_thread)}
    if left_out:
        found["BARE_LEAVE_OUT"] = ",".join(sorted({name.split("_v")[0] for name in left_out}))
    config = request.get("config", {})
    for variable, key in (("BARE_BUFFER", "buffer_bytes"), ("BARE_DEVICE_BUFFER", "device_buffer_bytes"),
                          ("BARE_DEVICE_BUFFERS", "device_buffers"), ("BARE_DEVICE_LIMIT", "device_buffer_limit")):
        if key in config:
            found[variable] = str(config[key])
    return found


class Bench:
    """The programs and the conditions they run under."""

    def __init__(self, scratch, quick):
        self.scratch, self.scale = pathlib.Path(scratch), 0.05 if quick else 1.0
        self.program = self.scratch / "record_bench"
        job = machine.build(HERE / "record_bench.cu", self.program)
        self.bare, self.kinds = machine.bare_client(scratch)
        self.library, self.request = machine.injection()
        machine.built([job])
        self.left_out, self.number = [], 0
        self.nsys = machine.nsys()
        # What the recorder switches on and leaves out, told by a spool of its own.
        walker = self.run("bubblescope", ["loop"], keep=True)["spool"]
        self.kinds = walker.header.get("kinds") or self.kinds
        self.left_out = [name.split("_v")[0] for name in walker.left_out]
        self.config = self.request.get("config", {})

    def bare_environment(self, kinds=None, per_thread=1, filtered=True):
        return bare_environment(self.bare, kinds or self.kinds, self.request, self.left_out if filtered else [], per_thread)

    def command(self, condition, program):
        """The command line and environment of a condition; None when the machine lacks the tool."""
        folder = self.scratch / f"run{self.number}"
        folder.mkdir()
        kind, _, level = condition.partition("-")
        if kind == "off" or kind == "torch.profiler":
            return program, {}, folder
        if kind == "bare":
            return program, self.bare_environment(self.kinds + ([51] if level == "graph" else [])), folder
        if kind == "bubblescope":
            config = {"graph": {"graphs": "graph"}, "all": {"all_apis": True}, "large": LARGE_BUFFERS}.get(level, {})
            return program, machine.injected(self.library, self.request, folder, config), folder
        if kind == "nsys":
            if not self.nsys:
                return None
            head = [self.nsys, "profile", "-t", "cuda", "-s", "none", "--cpuctxsw=none", "-f", "true",
                    f"--cuda-graph-trace={level or 'node'}", "-o", str(folder / "report")]
            return head + program, {"TMPDIR": str(folder)}, folder
        raise ValueError(condition)

    def run(self, condition, sections, keep=False, given=None, program=None, pin=None, unit="ns", scale=1.0):
        """Runs once: the figures by section, and what the recorder wrote."""
        self.number += 1
        program = program or [str(self.program), *sections]
        made = given(self.scratch / f"run{self.number}") if given else self.command(condition, program)
        if made is None:
            return None
        command, extra, folder = made if not given else (program, made, self.scratch / f"run{self.number}")
        folder.mkdir(exist_ok=True)
        environment = {**os.environ, "RECORD_BENCH_SCALE": str(self.scale * scale), **extra}
        job = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               cwd=folder)
        if pin is not None:
            threading.Thread(target=pin_threads, args=(job.pid, pin), daemon=True).start()
        try:
            text, errors = job.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            job.kill()
            text, errors = job.communicate()
        found = {}
        for line in machine.marked(text, "result: "):
            found.setdefault(line["section"], []).append(line)
        if not found:
            say(f"{condition} {sections}: no result, exit code {job.returncode}: {(text + errors)[-600:]}")
        spools = sorted(folder.glob("*.bubcap"))
        outcome = {"figures": {name: machine.middle([line[unit] for line in lines]) for name, lines in found.items()},
                   "lines": found, "code": job.returncode,
                   "spool_bytes": sum(path.stat().st_size for path in spools),
                   "bare": (machine.marked(errors, "bare: ") or [None])[-1]}
        if spools:
            walker = spool.of(spools[0])
            outcome["drops"] = walker.drops
            if keep:
                outcome["spool"] = walker
        elif keep:
            outcome["spool"] = spool_of_nothing()
            say(f"{condition}: no spool: {errors[-600:]}")
        if condition.startswith("nsys"):
            outcome["report"] = any(folder.glob("report.*"))
        shutil.rmtree(folder, ignore_errors=True)
        return outcome


def spool_of_nothing():
    class Nothing:
        header, left_out = {}, []
    return Nothing


def pin_threads(pid, wanted):
    """Pins the recorder's threads of a process, which carry its name, to one processor as soon as they are there."""
    cpu = max(os.sched_getaffinity(0))
    until = time.monotonic() + 20
    pinned = set()
    while time.monotonic() < until and len(pinned) < wanted:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
            try:
                if task.name not in pinned and (task / "comm").read_text().startswith("bubble"):
                    os.sched_setaffinity(int(task.name), {cpu})
                    pinned.add(task.name)
            except OSError:
                pass
        time.sleep(0.02)


def rounds(jobs, repetitions, deadline, keep_lines=False):
    """Runs the jobs (name, function) in turn, each round in another order, while the deadline allows a whole one. A job
    that fails is not tried again."""
    found, failed, longest = {name: [] for name, _ in jobs}, set(), 0.0
    for repetition in range(repetitions):
        at = time.monotonic()
        if repetition and at + longest > deadline:
            say(f"the budget ends it after {repetition} repetitions")
            break
        turn = repetition % len(jobs)
        for name, job in jobs[turn:] + jobs[:turn]:
            if name in failed:
                continue
            outcome = job()
            if not (outcome and outcome["figures"]):
                failed.add(name)
            if outcome and outcome["figures"]:
                entry = {key: outcome[key] for key in ("figures", "spool_bytes", "drops", "bare") if outcome.get(key)}
                if keep_lines:
                    entry["lines"] = outcome["lines"]
                found[name].append(entry)
        longest = max(longest, time.monotonic() - at)
    return {name: runs for name, runs in found.items() if runs}


def programs(bench, repetitions, deadline):
    every, graphs = ["loop", "threads", "graph", "synced"], ["graph", "synced"]
    jobs = [(name, lambda name=name, sections=sections: bench.run(name, sections, scale=SHORT)) for name, sections in (
        ("off", every), ("bubblescope", every), ("bare", every), ("nsys", every),
        ("bubblescope-large", every), ("bubblescope-graph", graphs), ("bare-graph", graphs), ("nsys-graph", graphs))]
    return rounds(jobs, OFTEN * repetitions, deadline)


def torch(bench, repetitions, deadline):
    def job(condition):
        extra = ["--profiler"] if condition == "torch.profiler" else []
        program = [sys.executable, str(HERE / "torch_bench.py"), "--scale", str(bench.scale), *extra]
        return bench.run(condition, ["torch"], program=program, unit="us")
    jobs = [(name, lambda name=name: job(name)) for name in ("off", "bubblescope", "bubblescope-all", "bare", "nsys", "torch.profiler")]
    return rounds(jobs, repetitions, deadline)


def stays(bench, repetitions, deadline):
    library, ranged = machine.injection(["--capture-range=cudaProfilerApi"])
    _, short = machine.injection(["--duration", "2s"])
    jobs = [
        ("range, off", lambda: bench.run("off", ["range"])),
        ("range, bubblescope", lambda: bench.run("", ["range"], given=lambda folder: machine.injected(library, ranged, folder))),
    ]
    found = rounds(jobs, repetitions, deadline)
    jobs = [
        ("time, off", lambda: bench.run("off", ["time"])),
        ("time, bubblescope", lambda: bench.run("", ["time"], given=lambda folder: machine.injected(library, short, folder))),
    ]
    return found | rounds(jobs, repetitions, deadline, keep_lines=True)


def settings(bench, repetitions, deadline):
    """The choice of settings, one changed at a time."""
    ours = {
        "bubblescope": {}, "all APIs": {"all_apis": True}, "CUDA events": {"events": True},
        "host buffers of 128 KiB": {"buffer_bytes": MiB // 8, "buffers": 256}, "host buffers of 2 MiB": {"buffer_bytes": 2 * MiB, "buffers": 16},
        "host buffers of 8 MiB": LARGE_BUFFERS, "host buffers of 32 MiB": {"buffer_bytes": 32 * MiB, "buffers": 4},
        "device buffers 8 × 8 MiB": {"device_buffer_bytes": 8 * MiB, "device_buffers": 8},
        "device buffers 3 × 3.2 MB": {"device_buffer_bytes": 3355443, "device_buffers": 3},
        "device buffers 8 × 32 MiB": {"device_buffer_bytes": 32 * MiB, "device_buffers": 8},
        "flush each 50 ms": {"flush_interval": 50}, "flush each 1 s": {"flush_interval": 1000},
    }
    kernels, copies, runtime, driver, sync = [10], [1, 2], [5], [4], [38]
    bare = {
        "bare": {}, "bare, all APIs": {"filtered": False}, "bare, one buffer for all threads": {"per_thread": 0},
        "bare, kernels": {"kinds": kernels}, "bare, kernels and copies": {"kinds": kernels + copies},
        "bare, and runtime calls": {"kinds": kernels + copies + runtime},
        "bare, and driver calls": {"kinds": kernels + copies + runtime + driver},
        "bare, and synchronisations": {"kinds": kernels + copies + runtime + driver + sync},
    }
    sections = ["loop", "threads", "synced"]
    jobs = [("off", lambda: bench.run("off", sections, scale=SHORT))]
    jobs += [(name, lambda config=config: bench.run("", sections, scale=SHORT, given=lambda folder: machine.injected(
        bench.library, bench.request, folder, config))) for name, config in ours.items()]
    jobs += [("writer pinned", lambda: bench.run("", sections, pin=2, scale=SHORT, given=lambda folder: machine.injected(
        bench.library, bench.request, folder)))]
    jobs += [(name, lambda options=options: bench.run("", sections, scale=SHORT, given=lambda folder: bench.bare_environment(**options)))
             for name, options in bare.items()]
    return rounds(jobs, 2 * repetitions, deadline)


def clock(bench, repetitions, deadline):
    """Another clock than the system's under the bare client: the same process with both."""
    def job(extra):
        return bench.run("", ["switch"], given=lambda folder: bench.bare_environment() | extra)
    return rounds([("system", lambda: job({})), ("tsc", lambda: job({"BARE_CLOCK": "1", "BARE_CHECK_TIMES": "1"}))], 2 * repetitions, deadline)


def device(bench, repetitions, deadline):
    """CUPTI's buffers on the device, by their size: how long a launch takes that another one is needed for, and whether
    all kernels of large graphs have a time. The most memory that they may take is the same."""
    def job(size):
        slots, limit = size // SLOT, DEVICE_MEMORY // size
        buffers = 16
        extra = {"BARE_CHECK_TIMES": "1", "BARE_DEVICE_BUFFER": str(size), "BARE_DEVICE_BUFFERS": str(buffers), "BARE_DEVICE_LIMIT": str(limit)}
        own = {"RECORD_BENCH_SLOTS": str(slots), "RECORD_BENCH_BUFFERS": str(buffers)}
        return bench.run("", ["reuse", "huge"], given=lambda folder: bench.bare_environment() | extra | own)
    sizes = [2 * MiB, MiB // 2, MiB // 4, MiB // 8, MiB // 16]
    return rounds([(str(size), lambda size=size: job(size)) for size in sizes], repetitions, deadline)


USUAL = {"programs": programs, "torch": torch, "stays": stays, "settings": settings}
PARTS = USUAL | {"clock": clock, "device": device}


def measure(options):
    only = options.only.split(",") if options.only else list(USUAL)
    repetitions = 1 if options.quick else options.repetitions
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        bench = Bench(scratch, options.quick)
        found = {"machine": machine.versions(), "cores": machine.keep_to_one_processor_a_core(), "kinds": bench.kinds, "left_out": bench.left_out,
                 "config": bench.config, "command": " ".join(sys.argv[1:])}
        deadline = started + options.budget
        for name in only:
            begun = time.monotonic()
            say(f"{name}: {deadline - begun:.0f} s are left")
            try:
                found[name] = PARTS[name](bench, repetitions, deadline)
            except Exception as error:  # What was measured before is worth more than the rest.
                say(f"{name}: {type(error).__name__}: {error}")
                found.setdefault("failed", {})[name] = str(error)
            found.setdefault("took_s", {})[name] = round(time.monotonic() - begun, 1)
            machine.write_json(options.output, found)
    table(found)


def table(found):
    for part in ("programs", "torch", "settings"):
        for name, runs in found.get(part, {}).items():
            middles = {key: machine.middle([run["figures"][key] for run in runs if key in run["figures"]])
                       for key in runs[0]["figures"]}
            print(f"{part:9} {name:34} {len(runs)} × " + "  ".join(f"{key} {value:.0f}" for key, value in middles.items()))
    for name, runs in found.get("stays", {}).items():
        if not name.startswith("time"):
            print(f"stays     {name:34} {len(runs)} × {runs[0]['figures']}")


# Memory.

def resident(pid):
    """Resident kilobytes of a process: all, and the anonymous part."""
    found = {}
    try:
        for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
            key, _, value = line.partition(":")
            if key in ("VmRSS", "RssAnon"):
                found[key] = int(value.split()[0])
    except OSError:
        return None
    return found or None


def mappings(pid):
    """Resident kilobytes of a process by what is mapped: files by name, the heap, and anonymous memory by the size of its
    mapping, which sets allocators apart: those of one kind map pieces of one size."""
    found, name = {}, None
    try:
        for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
            head = line.split(maxsplit=5)
            if "-" in head[0] and not head[0].endswith(":"):
                start, end = (int(part, 16) for part in head[0].split("-"))
                of = head[5].rsplit("/", 1)[-1] if len(head) > 5 else f"anonymous, {(end - start) >> 10} KiB {head[1]}"
                name = of
            elif head[0] == "Rss:" and int(head[1]):
                count, kb = found.get(name, (0, 0))
                found[name] = (count + 1, kb + int(head[1]))
    except (OSError, ValueError):
        return None
    return found


def grown(before, after, most=12):
    """What became larger between two looks at the mappings, the largest first: [name, pieces more, kilobytes more]."""
    changes = [[name, after.get(name, (0, 0))[0] - before.get(name, (0, 0))[0], after.get(name, (0, 0))[1] - before.get(name, (0, 0))[1]]
               for name in {**before, **after}]
    return sorted((change for change in changes if change[2]), key=lambda change: -abs(change[2]))[:most]


def writer_times(pid):
    """Seconds that the thread which writes the spool ran, and waited for a processor."""
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            if (task / "comm").read_text().startswith("bubbles-spool"):
                ran, waited, _ = (task / "schedstat").read_text().split()
                return {"ran_s": int(ran) / 1e9, "waited_s": int(waited) / 1e9}
        except (OSError, ValueError):
            pass
    return {}


def watch(program, seconds, extra, folder):
    """Runs the program and samples it, and the spool that it writes into the folder, each second."""
    log = folder / "log"
    command = [str(program), str(seconds), "4", "1", "0", str(log)]
    job = subprocess.Popen(command, env={**os.environ, **extra}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True)
    samples, walker, stopped = [], None, None
    first, last, looked = None, None, 0.0
    begun = time.monotonic()
    while job.poll() is None:
        time.sleep(1)
        if time.monotonic() - begun > SETTLED and time.monotonic() - looked > LOOKS:
            last, looked = mappings(job.pid) or last, time.monotonic()
            first = first or last
        memory = resident(job.pid)
        if walker is None:
            spools = sorted(folder.glob("*.bubcap"))
            if spools and spools[0].stat().st_size > spool.PREAMBLE:
                walker = spool.Walker(spools[0])
        written = walker.walk() if walker else 0
        if memory:
            samples.append({"s": round(time.monotonic() - begun, 2), "rss_kb": memory.get("VmRSS"),
                            "anon_kb": memory.get("RssAnon"), "spool_bytes": written,
                            "drops": walker.drops if walker else None, "pool_kb": walker.pool_bytes // 1024 if walker else None,
                            "own_kb": (walker.pool_bytes + walker.heap_bytes) // 1024 if walker and walker.heap_bytes else None,
                            **writer_times(job.pid)})
        if shutil.disk_usage(folder).free < LEAST_FREE:
            stopped = "the disk was nearly full"
            job.terminate()
            break
    text, errors = job.communicate(timeout=120)
    if walker:
        walker.walk()
    counts = (machine.marked(text, "counted: ") or [None])[-1]
    calls = (machine.marked(text, "calls: ") or [None])[-1]
    return {"samples": samples, "counted": counts, "calls": calls, "code": job.returncode, "stopped": stopped,
            "grown": grown(first, last) if first and last else [],
            "left_out": walker.left_out if walker else [], "spool_bytes": walker.at if walker else 0, "drops": walker.drops if walker else None,
            "ended": walker.ended if walker else None, "records_bytes": walker.buffer_bytes if walker else 0,
            "launches": launches(log), "errors": errors[-1000:]}


def launches(log):
    """Launch calls so far, second by second, as the program wrote them down: a rate that changes changes the memory."""
    lines = [line.split() for line in log.read_text().splitlines() if len(line.split()) == 3] if log.exists() else []
    return [int(calls) for _, _, calls in lines]


def slope(samples, key, after):
    """KiB a minute by least squares over the samples after so many seconds."""
    points = [(sample["s"], sample[key]) for sample in samples if sample["s"] >= after and sample.get(key)]
    if len(points) < 3:
        return None
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return 60 * sum((x - mean_x) * (y - mean_y) for x, y in points) / spread


def fit(part):
    """Adds the growth of a part's memory, of the recorder's buffers in it, and of all that the recorder has allocated: KiB a
    minute once it has its size."""
    samples = part["samples"]
    part["fit_after_s"] = min(SETTLED, samples[-1]["s"] / 4) if samples else 0
    for key, figure in (("rss_kb", "slope_kib_per_min"), ("pool_kb", "pool_slope_kib_per_min"), ("own_kb", "own_slope_kib_per_min")):
        part[figure] = slope(samples, key, part["fit_after_s"])


def memory(options):
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        program = pathlib.Path(scratch) / "minutes"
        job = machine.build(HERE.parent / "compat" / "minutes.cu", program)
        client, kinds = machine.bare_client(scratch)
        library, request = machine.injection()
        machine.built([job])
        request["config"] = {**request.get("config", {}), **options.config}
        found = {"machine": machine.versions(), "seconds": options.seconds, "config": request["config"]}
        for part, seconds, environment in (
                ("alone", options.alone, lambda folder: {}),
                ("recorded", options.seconds, lambda folder: machine.injected(library, request, folder)),
                ("bare", options.bare, lambda folder: bare_environment(client, kinds, request, found["recorded"]["left_out"]))):
            if not seconds:
                continue
            say(f"memory: {part}, {seconds:.0f} s")
            folder = pathlib.Path(scratch) / part
            folder.mkdir()
            found[part] = watch(program, seconds, environment(folder), folder)
            fit(found[part])
            shutil.rmtree(folder)
            # What there is of it stays if the rest does not end well.
            machine.write_json(options.output, found)
        print(json.dumps({part: {key: found[part].get(key) for key in
              ("counted", "calls", "code", "stopped", "spool_bytes", "drops", "slope_kib_per_min", "pool_slope_kib_per_min")}
              for part in ("alone", "recorded", "bare") if part in found}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", default=None, help="a folder for recordings, on a disk with room")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("output")
    one.add_argument("--quick", action="store_true")
    one.add_argument("--budget", type=float, default=480)
    one.add_argument("--only", default="")
    one.add_argument("--repetitions", type=int, default=REPETITIONS)
    one = commands.add_parser("memory")
    one.add_argument("output")
    one.add_argument("--seconds", type=float, default=240, metavar="S", help="how long it is recorded (default %(default)s)")
    one.add_argument("--alone", type=float, default=30, metavar="S", help="how long the program runs alone (default %(default)s)")
    one.add_argument("--bare", type=float, default=240, metavar="S", help="how long under the bare client; 0: not (default %(default)s)")
    one.add_argument("--config", type=json.loads, default={}, metavar="JSON", help="settings of the recorder other than its own, by name")
    one = commands.add_parser("write")
    one.add_argument("figures")
    one.add_argument("document")
    options = parser.parse_args()
    if options.command == "measure":
        measure(options)
    elif options.command == "memory":
        memory(options)
    else:
        import record_overhead_write
        record_overhead_write.write(pathlib.Path(options.figures), pathlib.Path(options.document))


if __name__ == "__main__":
    main()
