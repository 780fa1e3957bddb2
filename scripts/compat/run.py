#!/usr/bin/env python3
"""Records programs of every kind with `bubble-report record` and compares what it counts with what they count.

    run.py measure OUT_FOLDER [--quick] [--minutes S] [--only NAME,...] [--scratch FOLDER]
    run.py write RESULTS.json DOCUMENT

`measure` needs a GPU, nvcc and bubble-report on the PATH, and for the Python programs PyTorch and JAX. It leaves
compat.json and the compacted recordings in OUT_FOLDER. `write` makes the document of the results, anywhere.
"""

import argparse, dataclasses, json, os, pathlib, pty, re, select, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "measure"))
import machine
from machine import say

TIMEOUT = 150
# A compacted recording that is larger is not kept.
LARGEST_FIXTURE = 400_000


@dataclasses.dataclass
class Case:
    """A program, how it is recorded and what has to come out."""

    name: str
    title: str
    # The command; {} stands for the folder of built programs.
    command: list
    # Options of `bubble-report record`.
    options: list = dataclasses.field(default_factory=list)
    code: int = 0
    # Who counts: "program" prints its own counts, "profiler" is another run with --count, "nobody".
    counts: str = "program"
    # Arguments of that other run, beside --count.
    counted_with: list = dataclasses.field(default_factory=list)
    # Whether a bare CUPTI client counts too, in a run of its own.
    bare: bool = False
    processes: int = 1
    # What differs by design from what the program counts.
    adjust: dict = dataclasses.field(default_factory=dict)
    fixture: bool = True
    # Whether what the program prints is the same in each run.
    same_output: bool = True
    # The iterations that its NVTX ranges mark: how many, and their name.
    steps: tuple = None


PYTHON = sys.executable
TORCH, JAX = str(HERE / "torch_steps.py"), str(HERE / "jax_steps.py")
RANGE = ["--capture-range=cudaProfilerApi"]
CASES = [
    Case("runtime-shared", "C++, runtime API, shared cudart", ["{}/runtime-shared"], code=7, bare=True),
    Case("runtime-static", "C++, runtime API, static cudart", ["{}/runtime-static"], code=7),
    Case("runtime-graph-level", "the same, graphs as one op", ["{}/runtime-shared"], ["--graphs=graph"], code=7,
         adjust={"kernels": -1000, "copies": -100, "memsets": -100, "graphs": 100}),
    Case("driver", "C++, driver API, kernel from PTX", ["{}/driver"], bare=True),
    Case("family", "fork, fork and exec", ["{}/family"], processes=2, same_output=False),
    Case("torch-eager", "PyTorch, eager", [PYTHON, TORCH, "eager"], counts="profiler", bare=True),
    Case("torch-graphs", "PyTorch, CUDA graphs", [PYTHON, TORCH, "graphs"], counts="profiler", bare=True),
    Case("torch-compile", "torch.compile, measured steps", [PYTHON, TORCH, "compile", "--range"], RANGE,
         counts="profiler", counted_with=["--range"]),
    Case("torch-loader", "PyTorch, DataLoader with 3 workers and pinned memory", [PYTHON, TORCH, "loader"],
         counts="profiler", bare=True),
    Case("jax", "JAX", [PYTHON, JAX], counts="nobody", bare=True),
    Case("jax-range", "JAX, measured steps", [PYTHON, JAX, "--range"], RANGE, counts="profiler", fixture=False),
    Case("marked", "C++ with NVTX ranges", ["{}/marked"], ["--nvtx"], steps=(50, "step"), bare=True),
    Case("marked-range", "the same, only what an NVTX range marks", ["{}/marked", "inside"],
         ["--capture-range=nvtx:measured"], fixture=False),
    Case("torch-nvtx", "PyTorch, steps marked with NVTX", [PYTHON, TORCH, "eager", "--range", "nvtx"],
         ["--nvtx", "--capture-range=nvtx:measured"], counts="profiler", counted_with=["--range"], steps=(40, "step"),
         fixture=False),
    Case("torch-conflict", "PyTorch that runs torch.profiler itself", [PYTHON, TORCH, "eager", "--count"], counts="nobody",
         fixture=False, same_output=False),
    Case("no-cuda", "a program without CUDA", ["sh", "-c", "echo out; echo err >&2; exit 3"], code=3, counts="nobody",
         processes=0, fixture=False),
    Case("missing", "a program that is not there", ["./no-such-program"], code=127, counts="nobody", processes=0,
         fixture=False),
]
QUICK = ["runtime-shared", "driver", "family", "torch-eager", "no-cuda"]
KINDS = {"kernel": "kernels", "kernels": "kernels", "copy": "copies", "copies": "copies", "memset": "memsets",
         "memsets": "memsets", "graph launch": "graphs", "graph launches": "graphs", "process": "processes",
         "processes": "processes"}


def builds(folder):
    """Starts compiling every program; the jobs."""
    jobs = [machine.build(HERE / "runtime.cu", folder / "runtime-shared", "-cudart", "shared",
                          *[flag for folder in ("lib64", "targets/x86_64-linux/lib") for flag in ("-Xlinker", f"-rpath={machine.CUDA / folder}")]),
            machine.build(HERE / "runtime.cu", folder / "runtime-static", "-cudart", "static"),
            machine.build(HERE / "driver.cpp", folder / "driver", "-lcuda")]
    return jobs + [machine.build(HERE / f"{name}.cu", folder / name) for name in ("family", "killed", "minutes", "marked", "endless")]


def recorded_counts(errors):
    """What bubble-report says it recorded: `recorded 2 processes, 1,234 kernels and 40 copies over 3.21 s: ...`."""
    lines = [line for line in errors.splitlines() if re.search(r"\brecorded \d[\d,]* process", line)]
    if not lines:
        return None
    found = {"kernels": 0, "copies": 0, "memsets": 0, "graphs": 0, "processes": 0}
    for number, word in re.findall(r"([\d,]+) (process(?:es)?|kernels?|cop(?:y|ies)|memsets?|graph launch(?:es)?)",
                                   lines[-1].split(" over ")[0]):
        found[KINDS[word]] += int(number.replace(",", ""))
    return found | {"line": lines[-1].strip()}


def summed(counts):
    """The counts of several processes together."""
    keys = {key for one in counts for key in one}
    return {key: sum(one.get(key, 0) for one in counts) for key in keys} if counts else None


def compare(entry, done):
    """Notes where what was recorded is not what the program counted; a program that counted nothing is a problem."""
    for kind, counted in (entry["expected"]["program"] or {"kernels": -1}).items():
        recorded = (done["counts"] or {}).get(kind)
        if recorded != counted:
            entry["problems"].append(f"{recorded} {kind} recorded, {counted} counted")


def logged(log):
    """What the program `killed` wrote down as it went: seconds, kernels and copies that were done. A last line that is
    cut is left out."""
    lines = [line.split() for line in log.read_text().splitlines() if len(line.split()) == 3]
    return [(float(time_), int(kernels), int(copies)) for time_, kernels, copies in lines]


def start(command, extra=None, **options):
    return subprocess.Popen(command, env={**os.environ, **(extra or {})}, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


def finish(job, timeout=TIMEOUT):
    try:
        out, errors = job.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        job.kill()
        out, errors = job.communicate()
        errors += "\n(timed out)"
    return {"code": job.returncode, "out": out, "errors": errors}


class Runner:
    def __init__(self, out, scratch):
        self.out, self.scratch = out, scratch
        self.programs, self.kept = scratch / "programs", scratch / "fixtures"
        for folder in (self.programs, self.kept):
            folder.mkdir()

    def command(self, case):
        return [part.format(self.programs) if "{}" in part else part for part in case.command]

    def references(self, cases):
        """What the programs do without being recorded, what a profiler counts and what a bare client counts."""
        bare, kinds = machine.bare_client(self.scratch)
        jobs = {}
        for case in cases:
            command = self.command(case)
            if case.same_output and case.name != "missing":
                jobs[case.name, "plain"] = start(command, cwd=self.scratch)
            if case.counts == "profiler":
                jobs[case.name, "profiler"] = start([*command[:3 if "torch" in case.name else 2], *case.counted_with,
                                                     "--count"], cwd=self.scratch)
            if case.bare:
                extra = {"CUDA_INJECTION64_PATH": bare, "BARE_KINDS": ",".join(map(str, kinds))}
                jobs[case.name, "bare"] = start(command, extra, cwd=self.scratch)
        return {key: finish(job, 240) for key, job in jobs.items()}

    def record(self, name, command, options):
        """Records a program: what came out, and the files."""
        folder = self.scratch / name
        folder.mkdir()
        kept, report = folder / f"{name}.bubcap", folder / "report.json"
        full = [machine.bubble_report(), "record", "-o", str(kept), "--format", "json", "--report", str(report),
                *options, "--", *command]
        begun = time.monotonic()
        done = finish(start(full, cwd=folder), TIMEOUT + 300)
        done["took_s"] = round(time.monotonic() - begun, 2)
        done["spools"] = sorted(folder.glob(f"{name}*.bubcap"))
        done["counts"] = recorded_counts(done["errors"])
        try:
            done["report"] = json.loads(report.read_text())
        except (OSError, ValueError):
            done["report"] = None
        return done

    def keep(self, name, spools):
        """Compacts recordings; the sizes of those that are small enough to keep."""
        sizes = {}
        for path in spools:
            # Compacting takes a second per megabyte and leaves a tenth of it.
            if path.stat().st_size > 25 * LARGEST_FIXTURE:
                continue
            small = self.kept / path.name
            done = subprocess.run([machine.bubble_report(), "convert", str(path), "-o", str(small)], capture_output=True)
            if done.returncode or not small.exists():
                continue
            sizes[path.name] = small.stat().st_size
            if sizes[path.name] > LARGEST_FIXTURE:
                small.unlink()
        return sizes

    def entry(self, title, command, options, done):
        """What the results say of any recording."""
        report = done["report"] or {}
        quality = report.get("quality", {})
        keys = ("idle_reliable", "reasons", "dropped_records", "ops_without_time", "unfinished_ops", "orphan_ops",
                "launches_without_ops", "warnings", "cut_bytes", "profiler_ns")
        short = [pathlib.Path(part).name if "/" in part else part for part in command]
        return {
            "title": title, "command": ["bubble-report", "record", *options, "--", *short], "code": done["code"],
            "took_s": done["took_s"], "recorded": done["counts"],
            "spool_bytes": sum(path.stat().st_size for path in done["spools"]), "spools": len(done["spools"]),
            "quality": {key: quality[key] for key in keys if key in quality},
            "findings": [found.get("id") for found in report.get("findings") or []],
            "devices": [{key: device.get(key) for key in ("device", "span_ns", "busy_ns", "idle_ns", "ops")}
                        for device in report.get("devices", [])],
            "errors": done["errors"][-1500:], "problems": [],
        }

    def case(self, case, references):
        done = self.record(case.name, self.command(case), case.options)
        entry = self.entry(case.title, case.command, case.options, done)
        problems = entry["problems"]
        plain = references.get((case.name, "plain"))
        if done["code"] != case.code:
            problems.append(f"exit code {done['code']}, not {case.code}")
        if case.same_output and plain and done["out"] != plain["out"]:
            problems.append(f"printed {done['out'][-300:]!r}, and {plain['out'][-300:]!r} when not recorded")
        expected = {}
        if case.counts == "program":
            expected["program"] = summed(machine.marked(done["out"], "counted: "))
        elif case.counts == "profiler":
            other = references.get((case.name, "profiler"))
            expected["profiler"] = summed(machine.marked(other["out"], "counted: ")) if other else None
            if not expected["profiler"] and other:
                problems.append(f"the profiler counted nothing: {other['errors'][-300:]}")
        if case.bare:
            client = references.get((case.name, "bare"))
            counts = machine.marked(client["errors"], "bare: ") if client else []
            kinds = summed([one["kinds"] for one in counts])
            if kinds:
                expected["bare client"] = {"kernels": kinds.get("10", 0), "copies": kinds.get("1", 0) + kinds.get("22", 0),
                                           "memsets": kinds.get("2", 0)}
        entry["expected"] = expected
        recorded = done["counts"] or {}
        if case.processes and not recorded:
            problems.append("bubble-report says no counts")
        elif case.processes:
            for who, counts in expected.items():
                for kind in ("kernels", "copies", "memsets"):
                    wanted = (counts or {}).get(kind)
                    adjusted = None if wanted is None else wanted + case.adjust.get(kind, 0)
                    if adjusted is not None and recorded.get(kind) != adjusted:
                        problems.append(f"{recorded.get(kind)} {kind} recorded, {adjusted} counted by the {who}")
            if "graphs" in case.adjust and recorded.get("graphs") != case.adjust["graphs"]:
                problems.append(f"{recorded.get('graphs')} graph launches, not {case.adjust['graphs']}")
            if recorded.get("processes") != case.processes:
                problems.append(f"{recorded.get('processes')} processes, not {case.processes}")
            if case.steps:
                found = (done["report"] or {}).get("iterations") or {}
                wanted, name = case.steps
                counted = found.get("count", 0) + found.get("warmup", 0)
                if counted != wanted or name not in json.dumps(found.get("source")):
                    problems.append(f"{counted} iterations by {found.get('source')}, not {wanted} of {name}")
                else:
                    entry["steps"] = f"{counted} steps by ranges `{name}`"
            if entry["quality"].get("dropped_records"):
                problems.append(f"{entry['quality']['dropped_records']} records dropped")
        if case.fixture:
            entry["fixtures"] = self.keep(case.name, done["spools"])
        return entry

    def killed(self):
        """A program that is killed in the middle may lose what it did in its last second."""
        log = self.scratch / "killed.log"
        command = [str(self.programs / "killed"), "3", str(log)]
        done = self.record("killed", command, [])
        entry = self.entry("killed with SIGKILL in the middle", ["killed", "3", "LOG"], [], done)
        times = logged(log)
        recorded = done["counts"] or {}
        last = times[-1]
        earlier = [line for line in times if line[0] <= last[0] - 1.0][-1]
        kept = [line[0] for line in times if line[1] <= recorded.get("kernels", 0)]
        entry["expected"] = {"at the end": {"kernels": last[1], "copies": last[2]},
                             "1 s before": {"kernels": earlier[1], "copies": earlier[2]}}
        entry["lost_s"] = round(last[0] - kept[-1], 3) if kept else None
        if done["code"] != 128 + 9:
            entry["problems"].append(f"exit code {done['code']}, not 137")
        for kind, at in (("kernels", 1), ("copies", 2)):
            if recorded.get(kind, 0) < earlier[at]:
                entry["problems"].append(f"{recorded.get(kind, 0)} {kind} recorded, {earlier[at]} done 1 s before the end")
            if recorded.get(kind, 0) > last[at] + 9:
                entry["problems"].append(f"{recorded.get(kind)} {kind} recorded, only {last[at]} done")
        entry["fixtures"] = self.keep("killed", done["spools"])
        return entry

    def timed(self):
        """A part of a program by time: it runs on to its end."""
        log = self.scratch / "timed.log"
        command, options = [str(self.programs / "killed"), "3", str(log)], ["--delay=500ms", "--duration=1s"]
        done = self.record("timed", command, options)
        entry = self.entry("a second of a program, by time", ["killed", "3", "LOG"], options, done)
        times = logged(log)
        whole = times[-1][0] - times[0][0]
        rate = times[-1][1] / whole
        kernels, span = (done["counts"] or {}).get("kernels", 0), sum(one["span_ns"] for one in entry["devices"]) / 1e9
        entry["expected"] = {"program, in a second": {"kernels": round(rate)}}
        if done["code"] != 128 + 9:
            entry["problems"].append(f"exit code {done['code']}, not 137")
        if not 0.9 <= span <= 1.05:
            entry["problems"].append(f"{span:.3f} s recorded, not 1")
        if whole < 2.9:
            entry["problems"].append(f"the program ran for {whole:.2f} s only")
        # Recording slows the launches of that second down.
        if not 0.5 * rate <= kernels <= 1.1 * rate:
            entry["problems"].append(f"{kernels} kernels recorded in a second, {rate:.0f} a second on average")
        return entry

    def interrupted(self):
        """Ctrl-C at a terminal: the program ends as it wants to, then the recording is read and reported."""
        folder = self.scratch / "interrupted"
        folder.mkdir()
        kept, report = folder / "interrupted.bubbles.parquet", folder / "report.json"
        command = [machine.bubble_report(), "record", "-o", str(kept), "--format", "json", "--report", str(report), "--",
                   str(self.programs / "endless")]
        begun = time.monotonic()
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(folder)
            os.execv(command[0], command)
        text, pressed = "", None
        while time.monotonic() - begun < TIMEOUT:
            if pressed is None and "ready" in text:
                time.sleep(1)
                os.write(terminal, b"\x03")
                pressed = time.monotonic()
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    more = os.read(terminal, 65536)
                except OSError:  # The other side has closed it.
                    break
                if not more:
                    break
                text += more.decode(errors="replace")
        _, status = os.waitpid(child, 0)
        done = {"code": os.waitstatus_to_exitcode(status), "errors": text.replace("\r", "\n").replace("^C", ""), "spools": [kept] if kept.exists() else [],
                "took_s": round(time.monotonic() - begun, 2), "report": None}
        done["counts"] = recorded_counts(done["errors"])
        if report.exists():
            done["report"] = json.loads(report.read_text())
        entry = self.entry("ended with Ctrl-C at a terminal", ["endless"], [], done)
        entry["expected"] = {"program": summed(machine.marked(done["errors"], "counted: "))}
        if done["code"] != 6:
            entry["problems"].append(f"exit code {done['code']}, not 6")
        compare(entry, done)
        if not done["report"]:
            entry["problems"].append("no report")
        left = sorted(path.name for path in folder.iterdir() if path not in (kept, report))
        if left:
            entry["problems"].append(f"left behind: {left}")
        return entry

    def neighbour(self):
        """Another process uses the device meanwhile and is not recorded: the report names it."""
        stranger = start([str(self.programs / "minutes"), "8", "1", "0", "4000", str(self.scratch / "stranger.log")])
        time.sleep(1)
        done = self.record("neighbour", [str(self.programs / "runtime-shared")], [])
        stranger.terminate()
        finish(stranger)
        entry = self.entry("another program uses the GPU and is not recorded", ["runtime-shared"], [], done)
        entry["expected"] = {"program": summed(machine.marked(done["out"], "counted: "))}
        quality = entry["quality"]
        entry["steps"] = "; ".join(quality.get("reasons", []))
        if quality.get("idle_reliable") is not False:
            entry["problems"].append("the idle time is called reliable")
        if not any("minutes" in reason for reason in quality.get("reasons", [])):
            entry["problems"].append(f"the other program is not named: {quality.get('reasons')}")
        return entry

    def minutes(self, seconds):
        """A program that runs for minutes, at a rate that can be analysed."""
        log = self.scratch / "minutes.log"
        command = [str(self.programs / "minutes"), str(seconds), "4", "1", "4000", str(log)]
        done = self.record("minutes", command, [])
        entry = self.entry(f"runs for {seconds:.0f} s: four threads and a graph",
                           ["minutes", f"{seconds:.0f}", "4", "1", "4000", "LOG"], [], done)
        entry["expected"] = {"program": summed(machine.marked(done["out"], "counted: "))}
        compare(entry, done)
        if done["code"]:
            entry["problems"].append(f"exit code {done['code']}")
        return entry


def measure(options):
    out = pathlib.Path(options.output).resolve()
    out.mkdir(parents=True, exist_ok=True)
    wanted = options.only.split(",") if options.only else QUICK if options.quick else [case.name for case in CASES]
    cases = [case for case in CASES if case.name in wanted]
    results = {"machine": machine.versions(), "cases": {}, "took_s": {}}
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        runner = Runner(out, pathlib.Path(scratch))
        begun = time.monotonic()

        def lap(what):
            nonlocal begun
            results["took_s"][what] = round(time.monotonic() - begun, 1)
            say(f"{what}: {results['took_s'][what]} s")
            begun = time.monotonic()
            machine.write_json(out / "compat.json", results)

        jobs = builds(runner.programs)
        machine.built(jobs)
        lap("building")
        references = runner.references(cases)
        lap("references")
        for case in cases:
            results["cases"][case.name] = guarded(lambda: runner.case(case, references), case.title)
            say(f"{case.name}: {'; '.join(results['cases'][case.name]['problems']) or 'as expected'}")
        lap("recordings")
        for name in ("killed", "timed", "interrupted", "neighbour"):
            if not options.only or name in wanted:
                results["cases"][name] = guarded(getattr(runner, name), name)
                lap(name)
        if not options.only or "minutes" in wanted:
            seconds = 6 if options.quick else options.minutes
            results["cases"]["minutes"] = guarded(lambda: runner.minutes(seconds), "minutes")
            lap("minutes")
        machine.origin(runner.kept, results["machine"],
                       {name: " ".join(case.get("command", [])) for name, case in results["cases"].items() if case.get("fixtures")},
                       "scripts/compat/run.py measure")
        subprocess.run(["tar", "-czf", str(out / "compat-fixtures.tar.gz"), "-C", str(runner.kept), "."], check=False)
    machine.write_json(out / "compat.json", results)
    for name, entry in results["cases"].items():
        print(f"{name:20} {'ok' if not entry['problems'] else 'PROBLEM: ' + '; '.join(entry['problems'])}")


def guarded(job, title):
    """One case that breaks is one problem, and not the end of the others."""
    try:
        return job()
    except Exception as error:
        return {"title": title, "problems": [f"{type(error).__name__}: {error}"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("measure")
    one.add_argument("output")
    one.add_argument("--quick", action="store_true")
    one.add_argument("--minutes", type=float, default=240, help="seconds that the long one runs")
    one.add_argument("--only", default="")
    one.add_argument("--scratch", default=None)
    one = commands.add_parser("write")
    one.add_argument("results")
    one.add_argument("document")
    options = parser.parse_args()
    if options.what == "measure":
        measure(options)
    else:
        import compat_write
        compat_write.write(pathlib.Path(options.results), pathlib.Path(options.document))


if __name__ == "__main__":
    main()
