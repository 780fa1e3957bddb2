"""What the scripts that run on a machine with a GPU share: finding its tools, building programs, running them."""

import glob, json, os, pathlib, platform, re, shutil, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
CUDA = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def output_of(command, **options):
    """What a command prints, or an empty text when it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout + done.stderr


def bubble_report():
    """The program under test."""
    found = shutil.which("bubble-report")
    if not found:
        sys.exit("bubble-report is not on the PATH")
    return found


def keep_to_one_processor_a_core():
    """Keeps this process and what it starts to one hardware thread of each core, so that a program's threads do not slow
    each other down by where they happen to run. How many that are."""
    allowed, kept = os.sched_getaffinity(0), set()
    for processor in allowed:
        siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        try:
            numbers = [part.split("-") for part in siblings.read_text().strip().split(",")]
        except OSError:
            return len(allowed)
        kept.add(min(number for ends in numbers for number in range(int(ends[0]), int(ends[-1]) + 1) if number in allowed))
    os.sched_setaffinity(0, kept)
    return len(kept)


def nsys():
    """Nsight Systems, also the one that comes with Nsight Compute; None when there is none."""
    found = shutil.which("nsys")
    if found:
        return found
    places = ["/opt/nvidia/nsight-systems*/**/target-linux-x64/nsys", "/opt/nvidia/nsight-systems*/**/bin/nsys",
              "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys", "/usr/local/cuda*/nsight*/**/nsys",
              "/opt/**/target-linux-x64/nsys"]
    for place in places:
        for path in sorted(glob.glob(place, recursive=True)):
            if os.access(path, os.X_OK):
                return path
    return None


def versions():
    """Machine, driver and libraries, for the documents."""
    def python_packages():
        text = output_of([sys.executable, "-c",
            "import importlib.metadata as m, json\n"
            "found = {}\n"
            "for name in ('torch', 'jax', 'jaxlib', 'triton', 'nvidia-cuda-cupti', 'nvidia-cuda-cupti-cu12', 'nvidia-nccl-cu13', 'numpy'):\n"
            "    try: found[name] = m.version(name)\n"
            "    except Exception: pass\n"
            "print(json.dumps(found))"])
        try:
            return json.loads(text.strip().splitlines()[-1])
        except (ValueError, IndexError):
            return {}
    smi = output_of(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]).strip()
    nvcc = re.search(r"release ([\d.]+)", output_of(["nvcc", "--version"]))
    cpu = re.search(r"model name\s*:\s*(.*)", output_of(["cat", "/proc/cpuinfo"]))
    tool = nsys()
    profiler = re.search(r"version\s+(\S+)", output_of([tool, "--version"])) if tool else None
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "gpus": smi.splitlines(),
        "cpu": cpu.group(1).strip() if cpu else "",
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release().split("-")[0],
        "toolkit": nvcc.group(1) if nvcc else "",
        "python": platform.python_version(),
        "packages": python_packages(),
        "nsys": profiler.group(1) if profiler else "",
        "bubble-report": output_of([bubble_report(), "--version"]).strip(),
        "doctor": doctor(),
    }


def doctor():
    """What bubble-report finds on the machine."""
    text = subprocess.run([bubble_report(), "doctor", "--format", "json"], capture_output=True, text=True).stdout
    try:
        return json.loads(text)
    except ValueError:
        return {}


def build(source, output, *flags):
    """Compiles one program; the process, to be waited for with `built`."""
    command = ["nvcc", "-O2", "-arch=native", "-std=c++17", *flags, str(source), "-o", str(output)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True), command


def built(jobs):
    """Waits for builds; says which failed."""
    for job, command in jobs:
        text = job.communicate()[0]
        if job.returncode:
            say(f"{' '.join(command)}: {text}")


def injection(arguments=()):
    """The recorder library, and the request that `bubble-report record ARGUMENTS` hands to a program: both as a
    program sees them that is started by it."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [bubble_report(), "record", "-o", f"{scratch}/t.bubcap", *arguments, "--", "env"]
        text = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    try:
        return found["CUDA_INJECTION64_PATH"], json.loads(found["BUBBLESCOPE_INJECT"])
    except KeyError:
        sys.exit(f"bubble-report record sets no injection library: {text[-2000:]}")


def injected(library, request, folder, config=None, window=None):
    """The environment in which a program records itself into `folder`, with other settings."""
    request = {**request, "folder": str(folder)}
    request["config"] = {**request.get("config", {}), **(config or {})}
    if window is not None:
        request["window"] = window
    found = {"CUDA_INJECTION64_PATH": library, "BUBBLESCOPE_INJECT": json.dumps(request)}
    if request["config"].get("nvtx"):
        found["NVTX_INJECTION64_PATH"] = library
    return found


def bare_client(scratch):
    """Builds bare_inject.c against the libcupti that bubble-report records with: its path and the kinds to enable."""
    recording = doctor().get("recording") or {}
    kinds = recording.get("kinds") or [10, 1, 2, 5, 4, 38, 17, 8, 9, 37, 48, 52]
    library = pathlib.Path(scratch) / "libbare_inject.so"
    include = next((path for path in (CUDA / "targets/x86_64-linux/include", CUDA / "include",
                                      CUDA / "extras/CUPTI/include") if (path / "cupti.h").exists()), CUDA / "include")
    cupti = pathlib.Path(recording.get("library") or "/nowhere")
    if not cupti.exists():
        places = [path for place in ("targets/x86_64-linux/lib", "extras/CUPTI/lib64", "lib64")
                  for path in sorted((CUDA / place).glob("libcupti.so.*"))]
        if not places:
            sys.exit("no libcupti to build the bare client against")
        cupti = places[0]
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{include}", f"-I{CUDA / 'include'}",
               f"-I{CUDA / 'targets/x86_64-linux/include'}", str(HERE / "bare_inject.c"), str(cupti),
               f"-Wl,-rpath,{cupti.resolve().parent}", "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return str(library), kinds


def origin(folder, versions, commands, script):
    """Says beside compacted recordings where they come from."""
    gpu = versions["gpus"][0].split(", ") if versions["gpus"] else ["a GPU", "unknown"]
    packages = ", ".join(f"{name} {version}" for name, version in versions["packages"].items())
    text = [f"Recorded on {versions['date']} on {len(versions['gpus'])} x {gpu[0]}, driver {gpu[1]}, Linux {versions['kernel']}, "
            f"CUDA toolkit {versions['toolkit']},", f"{packages}, by {versions['bubble-report']}, and compacted with",
            "`bubble-report convert`, which leaves the paths of that machine out. Made by", f"{script}:", ""]
    text += [f"{name}  {command}" for name, command in commands.items()]
    (pathlib.Path(folder) / "ORIGIN.txt").write_text("\n".join(text) + "\n")


def marked(text, mark):
    """The JSON values that a program printed after `mark`."""
    return [json.loads(line[len(mark):]) for line in text.splitlines() if line.startswith(mark)]


def middle(values):
    return statistics.median(values)


def write_json(path, value):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Lists of numbers in one line: some have thousands.
    text = re.sub(r"\[\s+([-+.,\deE\s]+?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", json.dumps(value, indent=1))
    path.write_text(text + "\n")
