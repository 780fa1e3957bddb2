#!/usr/bin/env python3
"""What recording with `bubble-report record` costs a program, beside a bare CUPTI client, Nsight Systems and torch.profiler.

    record_overhead.py measure OUT.json [--quick] [--budget SECONDS] [--only PART,...] [--repetitions N]
    record_overhead.py memory OUT.json [--seconds S] [--alone S] [--bare S] [--config JSON]
    record_overhead.py write FIGURES_FOLDER DOCUMENT

`measure` runs programs under every condition at once, which take turns in pieces, until the budget is used up, two
sets of processes after one another. Its parts: `programs` (C++ loops), `torch`, and `settings`; `stays` (what stays after
recording has ended) runs a process after another; by `--only` also `clock` (CUPTI with another clock), `device` (its buffers on the device),
`torch_settings`, and `changes` (what it costs that a buffer is full). `memory` watches a program at
the highest rate for minutes, its memory and the file: for some seconds alone, recorded, and under the bare client, which
has CUPTI's own memory and nothing of ours. Both need a GPU, nvcc and bubble-report on the PATH. `write` makes the document of the figures, anywhere.
"""

import argparse, json, os, pathlib, random, select, shutil, signal, subprocess, sys, tempfile, threading, time

import buffer_changes, machine, spool
from machine import HERE, say

REPETITIONS = 5
# How many sets of processes take turns, one after the other.
SETS = 2
# The most rounds of turns that are kept of one set of processes.
ROUNDS = 100
# The C++ programs, in pieces that `record_bench turns` knows.
LOOPS = ("loop", "threads", "graph", "synced")
# How many processors a piece has, where it keeps more than one busy.
NEEDS = {"threads": 4, "step": 2, "bound": 2}
# The pieces of a round that recorders are compared by: more than once where recording adds the smallest part, or the pace changes most.
COMPARED = {"programs": (*LOOPS, "loop", "loop", "threads"), "torch": ("step", "inference", "bound", "step", "step", "inference")}
# How long a piece is, in the short ones that the programs know.
PIECES = 8
# How long a program may take for an answer, or to end, seconds.
PATIENCE = 120
# How much of a run is left out of the fit of its memory: it has its size then.
SETTLED = 30
# Between two looks at all mappings, seconds: they take a lock that whoever maps memory waits for.
LOOKS = 10
# A recording at the highest rate ends when the disk has no more than this.
LEAST_FREE = 4 << 30
MiB = 1 << 20
# What an op takes of a buffer on the device (cupti_activity.h: 3,200,000 bytes for 100,000 kernels, copies and memsets), and what all of them may.
SLOT, DEVICE_MEMORY = 32, 512 * MiB


def bare_environment(client, kinds, request, left_out, per_thread=1):
    """How the bare client records the same kinds with buffers as large as the recorder's, without the calls left out."""
    found = {"CUDA_INJECTION64_PATH": client, "BARE_KINDS": ",".join(map(str, kinds)), "BARE_PER_THREAD": str(per_thread)}
    if left_out:
        found["BARE_LEAVE_OUT"] = ",".join(sorted({name.split("_v")[0] for name in left_out}))
    config = request.get("config", {})
    for variable, key in (("BARE_BUFFER", "buffer_bytes"), ("BARE_DEVICE_BUFFER", "device_buffer_bytes"),
                          ("BARE_DEVICE_BUFFERS", "device_buffers"), ("BARE_DEVICE_LIMIT", "device_buffer_limit"),
                          ("BARE_FLUSH", "flush_interval")):
        if key in config:
            found[variable] = str(config[key])
    return found


class Bench:
    """The programs and the conditions they run under."""

    def __init__(self, scratch, quick):
        self.scratch, self.scale = pathlib.Path(scratch), 0.05 if quick else 1.0
        # What `turns` measures at once, as often as what the programs do then in some 7 to 65 ms. It has to be far longer
        # than the time in which a buffer is full: what is done with it afterwards belongs to the cost.
        self.pieces = 1 if quick else PIECES
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

    def command(self, condition, program, folder):
        """The command line and environment of a condition that writes into the folder; None when the machine lacks the tool."""
        kind, _, level = condition.partition("-")
        if kind == "off" or kind == "torch.profiler":
            return program, {}
        if kind == "bare":
            return program, self.bare_environment(self.kinds + ([51] if level == "graph" else []))
        if kind == "bubblescope":
            config = {"graph": {"graphs": "graph"}, "all": {"all_apis": True}}.get(level, {})
            return program, machine.injected(self.library, self.request, folder, config)
        if kind == "nsys":
            if not self.nsys:
                return None
            head = [self.nsys, "profile", "-t", "cuda", "-s", "none", "--cpuctxsw=none", "-f", "true",
                    f"--cuda-graph-trace={level or 'node'}", "-o", str(folder / "report")]
            return head + program, {"TMPDIR": str(folder)}
        raise ValueError(condition)

    def started(self, condition, program, given=None, scale=None):
        """The program started under a condition, or with the environment that `given` makes for its folder; the process
        and its folder, None when the machine lacks the tool."""
        self.number += 1
        folder = self.scratch / f"run{self.number}"
        folder.mkdir()
        made = (program, given(folder)) if given else self.command(condition, program, folder)
        if made is None:
            return None
        command, extra = made
        environment = {**os.environ, "RECORD_BENCH_SCALE": str(scale or self.scale), **extra}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=folder, start_new_session=True), folder

    def run(self, condition, sections, keep=False, given=None):
        """Runs once: the figures by section, ns, and what the recorder wrote."""
        started = self.started(condition, [str(self.program), *sections], given)
        if not started:
            return None
        job, folder = started
        text, errors = ended(job)
        found = {}
        for line in machine.marked(text, "result: "):
            found.setdefault(line["section"], []).append(line)
        if not found:
            say(f"{condition} {sections}: no result, exit code {job.returncode}: {(text + errors)[-600:]}")
        outcome = {"figures": {name: machine.middle([line["ns"] for line in lines]) for name, lines in found.items()},
                   "lines": found, "code": job.returncode, **written(folder, errors, keep)}
        shutil.rmtree(folder, ignore_errors=True)
        return outcome


def ended(job):
    """What a program printed to its end, which it has to come to."""
    try:
        return job.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        # With all that it has started, which keeps the pipes open.
        os.killpg(job.pid, signal.SIGKILL)
        return job.communicate()


def written(folder, errors, keep=False):
    """What a recorder left in the folder of a run, and the bare client among the errors of one."""
    spools = sorted(folder.glob("*.bubcap"))
    found = {"spool_bytes": sum(path.stat().st_size for path in spools), "bare": (machine.marked(errors, "bare: ") or [None])[-1]}
    if spools:
        walker = spool.of(spools[0])
        found["drops"] = walker.drops
        if keep:
            found["spool"] = walker
    elif keep:
        found["spool"] = spool_of_nothing()
        say(f"no spool: {errors[-600:]}")
    return found


class Standing:
    """A program that does a piece of its work whenever it is told to, under one condition."""

    def __init__(self, bench, condition, program, given=None, pin=0):
        self.pipes = [bench.scratch / f"{bench.number + 1}.{name}" for name in ("in", "out")]
        for path in self.pipes:
            os.mkfifo(path)
        # For both directions, so that opening waits for nobody. The program sees the end when they are closed.
        self.to, self.answers = (os.open(path, os.O_RDWR) for path in self.pipes)
        self.job, self.folder = bench.started(condition, [*program, "turns", *map(str, self.pipes)], given, bench.pieces) or (None, None)
        if pin and self.job:
            threading.Thread(target=pin_threads, args=(self.job.pid, pin), daemon=True).start()

    def answer(self):
        """The next figure of the program, which is there once it is ready for the first; None when it has ended or hangs."""
        text, until = b"", time.monotonic() + PATIENCE
        while self.job and not text.endswith(b"\n"):
            if select.select([self.answers], [], [], 1)[0]:
                text += os.read(self.answers, 64)
            elif self.job.poll() is not None or time.monotonic() > until:
                return None
        return float(text) if self.job else None

    def piece(self, section, processors):
        os.write(self.to, f"{section[0]}{','.join(map(str, processors))}".encode())
        return self.answer()

    def stop(self):
        """Lets it end."""
        os.close(self.to)

    def end(self, look=None):
        """Waits for its end; what its recorder wrote, at which `look` has a look."""
        found = {}
        if self.job:
            found = written(self.folder, ended(self.job)[1])
            look(self.folder) if look else None
        os.close(self.answers)
        shutil.rmtree(self.folder, ignore_errors=True) if self.folder else None
        for path in self.pipes:
            path.unlink()
        return found


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


def turns(bench, conditions, sections, repetitions, deadline, has=lambda name, section: True):
    """Runs the conditions, a name and the program with what makes its environment for each, as processes that are there at
    once and take turns in pieces, in another order each time and all on the same processor, another one for each round:
    the pace of the machine changes by more than what is to be told apart, from one processor to the next and from one
    second to the next. New processes for each set. A condition `has` a section or not."""
    processors = sorted(os.sched_getaffinity(0))
    found = {name: [] for name in conditions}
    chance, begun = random.Random(0), time.monotonic()
    sets = min(repetitions, SETS)
    for number in range(sets):
        until = begun + (deadline - begun) * (number + 1) / sets
        standing, ready = {}, set()
        try:
            # Nsight Systems gives up where many start at once.
            for name in sorted(conditions, key=lambda name: not name.startswith("nsys")):
                standing[name] = Standing(bench, name, *conditions[name])
                if name.startswith("nsys") and standing[name].answer() is not None:
                    ready.add(name)
            ready |= {name for name, one in standing.items() if not name.startswith("nsys") and one.answer() is not None}
            say(f"{len(ready)} of {len(standing)} are ready, {until - time.monotonic():.0f} s are left for them")
            figures = {name: {section: [] for section in sections if has(name, section)} for name in ready}
            at, length, rounds_ = time.monotonic(), 0.0, 0
            while rounds_ < ROUNDS and time.monotonic() + length < until:
                for section in sections:
                    chosen = chance.sample(processors, min(len(processors), NEEDS.get(section, 1)))
                    now = sorted(name for name in ready if has(name, section))
                    for name in chance.sample(now, len(now)):
                        figure = standing[name].piece(section, chosen)
                        if figure is None:
                            ready.remove(name)
                        else:
                            figures[name][section].append(round(figure))
                rounds_ += 1
                length = (time.monotonic() - at) / rounds_
            say(f"{rounds_} rounds of {length:.2f} s")
        finally:
            for one in standing.values():
                one.stop()
            left = {name: one.end() for name, one in standing.items()}
        for name, one in standing.items():
            if name in ready and rounds_:
                found[name].append({"figures": figures[name], **{key: value for key, value in left[name].items() if value}})
            else:
                say(f"{name}: gone, with exit code {one.job.returncode if one.job else None}")
    # What is missing in one of the sets cannot be compared set by set.
    return {name: runs for name, runs in found.items() if len(runs) == sets}


def programs(bench, repetitions, deadline):
    names = ("off", "bubblescope", "bare", "nsys", "bubblescope-graph", "bare-graph", "nsys-graph")
    return turns(bench, {name: ([str(bench.program)],) for name in names}, COMPARED["programs"], repetitions, deadline,
                 lambda name, section: "-" not in name or section in ("graph", "synced"))


def torch(bench, repetitions, deadline):
    program = [sys.executable, str(HERE / "torch_bench.py")]
    conditions = {name: (program,) for name in ("off", "bubblescope", "bare", "nsys")}
    conditions["torch.profiler"] = ([*program, "--profiler"],)
    return turns(bench, conditions, COMPARED["torch"], repetitions, deadline)


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
        "host buffers of 8 MiB": {"buffer_bytes": 8 * MiB, "buffers": 8}, "host buffers of 32 MiB": {"buffer_bytes": 32 * MiB, "buffers": 4},
        "device buffers 8 × 8 MiB": {"device_buffer_bytes": 8 * MiB, "device_buffers": 8},
        "device buffers 3 × 3.2 MB": {"device_buffer_bytes": 3355443, "device_buffers": 3},
        "device buffers 8 × 32 MiB": {"device_buffer_bytes": 32 * MiB, "device_buffers": 8},
        "flush each 50 ms": {"flush_interval": 50}, "flush each 1 s": {"flush_interval": 1000},
    }
    kernels, copies, runtime, driver, sync = [10], [1, 2], [5], [4], [38]
    bare = {
        "bare": ({}, {}), "bare, all APIs": ({"filtered": False}, {}), "bare, one buffer for all threads": ({"per_thread": 0}, {}),
        "bare, kernels": ({"kinds": kernels}, {}), "bare, kernels and copies": ({"kinds": kernels + copies}, {}),
        "bare, and runtime calls": ({"kinds": kernels + copies + runtime}, {}),
        "bare, and driver calls": ({"kinds": kernels + copies + runtime + driver}, {}),
        "bare, and synchronisations": ({"kinds": kernels + copies + runtime + driver + sync}, {}),
        "bare, host buffers of 2 MiB": ({}, {"BARE_BUFFER": str(2 * MiB)}), "bare, host buffers of 8 MiB": ({}, {"BARE_BUFFER": str(8 * MiB)}),
        "bare, device buffers in page-locked memory of the host": ({}, {"BARE_PINNED": "1"}), "bare, times by the GPU's clock": ({}, {"BARE_RAW": "1"}),
        "bare, buffers zeroed past the cache": ({}, {"BARE_ZERO": "past"}),
        "bare, buffers zeroed by the thread that asks": ({}, {"BARE_ZERO": "before"}),
        "bare, buffers zeroed by CUPTI": ({}, {"BARE_ZERO": "cupti"}),
    }
    program = [str(bench.program)]
    conditions = {"off": (program,), "nsys": (program,), "writer pinned": (program, lambda folder: machine.injected(bench.library, bench.request, folder), 2)}
    conditions |= {name: (program, lambda folder, config=config: machine.injected(bench.library, bench.request, folder, config))
                   for name, config in ours.items()}
    conditions |= {name: (program, lambda folder, options=options, extra=extra: bench.bare_environment(**options) | extra)
                   for name, (options, extra) in bare.items()}
    return turns(bench, conditions, LOOPS, repetitions, deadline)


def torch_settings(bench, repetitions, deadline):
    """Some of them on PyTorch, and what Nsight Systems sets otherwise under the bare client."""
    theirs = {"kinds": [1, 2, 4, 5, 10, 17, 38, 39, 48, 52]}
    ours = {"bubblescope": {}, "host buffers of 2 MiB": {"buffer_bytes": 2 * MiB, "buffers": 16}, "host buffers of 8 MiB": {"buffer_bytes": 8 * MiB, "buffers": 8},
            "flush each 1 s": {"flush_interval": 1000}}
    bare = {"bare": ({}, {}), "bare, flushed at the end only": ({}, {"BARE_FLUSH": "0"}), "bare, one buffer for all threads": ({"per_thread": 0}, {}),
            "bare, kernels": ({"kinds": [10]}, {}), "bare, host buffers of 2 MiB": ({}, {"BARE_BUFFER": str(2 * MiB)}),
            "bare, Nsight Systems' kinds": (theirs, {}), "bare, the processor's counter as clock": ({}, {"BARE_CLOCK": "2"}),
            "bare, times by the GPU's clock": ({}, {"BARE_RAW": "1"}), "bare, these three": (theirs, {"BARE_RAW": "1", "BARE_CLOCK": "2"})}
    program = [sys.executable, str(HERE / "torch_bench.py")]
    conditions = {"off": (program,), "nsys": (program,)} | {
        name: (program, lambda folder, config=config: machine.injected(bench.library, bench.request, folder, config)) for name, config in ours.items()} | {
        name: (program, lambda folder, options=options, extra=extra: bench.bare_environment(**options) | extra) for name, (options, extra) in bare.items()}
    return turns(bench, conditions, ("inference",), repetitions, deadline)


def changes(bench, repetitions, deadline):
    """What it costs that a buffer is full, as recordings themselves tell it."""
    found = {}
    for name, program, piece, count in (("synced", [str(bench.program)], "synced", 6), ("inference", [sys.executable, str(HERE / "torch_bench.py")], "inference", 4)):
        for size in (MiB // 2, 2 * MiB):
            config = {"buffer_bytes": size, "buffers": 32 * MiB // size}
            one = Standing(bench, "", program, lambda folder: machine.injected(bench.library, bench.request, folder, config))
            answered = one.answer() is not None and all(one.piece(piece, [processor]) for processor in range(count))
            one.stop()
            told = []
            one.end(lambda folder: told.extend(map(buffer_changes.told_by, folder.glob("*.bubcap"))))
            if answered and told and told[0]:
                found[f"{name}, {size >> 10} KiB"] = told[0]
    return found


def clock(bench, repetitions, deadline):
    """Another clock than the system's under the bare client: the same process with both."""
    def job(extra):
        return bench.run("", ["switch"], given=lambda folder: bench.bare_environment() | extra)
    return rounds([("system", lambda: job({})), ("tsc", lambda: job({"BARE_CLOCK": "1", "BARE_CHECK_TIMES": "1"}))], 2 * repetitions, deadline)


def device(bench, repetitions, deadline):
    """CUPTI's buffers on the device, by their size, and in page-locked memory of the host: how long a launch takes that another
    one is needed for, and whether all kernels of large graphs have a time. The most memory that they may take is the same."""
    def job(size, pinned=False):
        slots, limit = size // SLOT, DEVICE_MEMORY // size
        buffers = 16
        extra = {"BARE_CHECK_TIMES": "1", "BARE_DEVICE_BUFFER": str(size), "BARE_DEVICE_BUFFERS": str(buffers), "BARE_DEVICE_LIMIT": str(limit)}
        own = {"RECORD_BENCH_SLOTS": str(slots), "RECORD_BENCH_BUFFERS": str(buffers), "BARE_PINNED": str(int(pinned))}
        return bench.run("", ["reuse", "huge"], given=lambda folder: bench.bare_environment() | extra | own)
    sizes = [2 * MiB, MiB // 2, MiB // 4, MiB // 8, MiB // 16]
    jobs = [(str(size), lambda size=size: job(size)) for size in sizes]
    return rounds([*jobs, (f"{sizes[0]}, page-locked", lambda: job(sizes[0], pinned=True))], repetitions, deadline)


USUAL = {"programs": programs, "torch": torch, "stays": stays, "settings": settings}
PARTS = USUAL | {"clock": clock, "device": device, "torch_settings": torch_settings, "changes": changes}


def measure(options):
    only = options.only.split(",") if options.only else list(USUAL)
    repetitions = 1 if options.quick else options.repetitions
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        bench = Bench(scratch, options.quick)
        found = {"machine": machine.versions(), "cores": machine.keep_to_one_processor_a_core(), "kinds": bench.kinds, "left_out": bench.left_out,
                 "config": bench.config, "pieces": bench.pieces, "needs": NEEDS, "command": " ".join(sys.argv[1:])}
        deadline = started + options.budget
        for place, name in enumerate(only):
            begun = time.monotonic()
            share = (deadline - begun) / (len(only) - place)
            say(f"{name}: {share:.0f} s")
            try:
                found[name] = PARTS[name](bench, repetitions, begun + share)
            except Exception as error:  # What was measured before is worth more than the rest.
                say(f"{name}: {type(error).__name__}: {error}")
                found.setdefault("failed", {})[name] = str(error)
            found.setdefault("took_s", {})[name] = round(time.monotonic() - begun, 1)
            machine.write_json(options.output, found)
    table(found)


def table(found):
    for part in ("programs", "torch", "settings"):
        for name, runs in found.get(part, {}).items():
            middles = {key: machine.middle([value for run in runs for value in run["figures"][key]]) for key in runs[0]["figures"]}
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
    one.add_argument("--budget", type=float, default=1800)
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
