#!/usr/bin/env python3
"""How fast a trace of PyTorch's profiler is read, against HolisticTraceAnalysis and Python's json.

    cargo bench --bench import --no-run             # its path is printed: BENCH
    cargo build --release                           # target/release/bubble-report: REPORT
    python3 -m venv VENV && VENV/bin/pip install HolisticTraceAnalysis 'pandas<3'
    scripts/measure/import_speed.py BENCH REPORT VENV/bin/python docs/measurements/import-speed.md

Every reader gets the same file, in a process of its own, one after the other, after the file was read once. Processor
time (user and system) is what is compared, and of several rounds the least: other programs on the machine share its
caches and its cores' halves, which can only add to it.
"""

import gzip
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time

MEGABYTES = 200
ROUNDS = 3

JSON = "import json, sys; json.load(open(sys.argv[1]))"
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=".")
frame, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
print(frame["idle_time"].sum())
"""
HTA_VERSION = "from importlib.metadata import version; print(version('HolisticTraceAnalysis'), version('pandas'))"


def run(command):
    """Seconds of processor time, seconds of wall time, MiB of memory and what was printed."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
        error = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
        output.seek(0)
        text = output.read().decode()
    if status != 0:
        sys.exit(f"{' '.join(command)}: {error.decode()[-2000:]}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024, text


def processor():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return f"{len(names)} processors ({names[0]})"


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    bench, report, python, target = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "trace.json")
        packed = plain + ".gz"
        subprocess.run([bench, "--write", plain, str(MEGABYTES)], check=True)
        with open(plain, "rb") as source, gzip.open(packed, "wb", 6) as sink:
            shutil.copyfileobj(source, sink)
        readers = [
            ("`bubble-report convert`, plain: read, and write a trace file", [report, "convert", plain, "-o", os.path.join(folder, "out.bubbles.parquet")]),
            ("`bubble-report convert`, gzip", [report, "convert", packed, "-o", os.path.join(folder, "out2.bubbles.parquet")]),
            ("`bubble-report analyze`: read, and the whole report", [report, "analyze", plain, "--format", "json"]),
            ("Python's `json.load` alone", [python, "-c", JSON, plain]),
            ("HolisticTraceAnalysis: load, and idle time breakdown", [python, "-c", HTA, plain]),
        ]
        rows = {name: [] for name, _ in readers}
        for _ in range(ROUNDS):
            for name, command in readers:
                rows[name].append(run(command))
        size, packed_size = os.path.getsize(plain), os.path.getsize(packed)
    benched = subprocess.run([bench, "--bench", "--sample-count", "5"], capture_output=True, text=True, check=True).stdout
    # What one more read costs in processor time, generating the text left out.
    reads = {}
    for name in ["read_sound", "read_one_name_in_100_damaged", "read_every_name_damaged"]:
        many, one = (min(run([bench, "--bench", name, "--sample-count", count])[0] for _ in range(2 * ROUNDS)) for count in ("11", "1"))
        reads[name] = (many - one) / 10
    versions = subprocess.run([python, "-c", HTA_VERSION], capture_output=True, text=True, check=True).stdout.split()
    write(target, rows, reads, size, packed_size, versions, benched)


def write(target, rows, reads, size, packed_size, versions, benched):
    least = lambda name, column: min(row[column] for row in rows[name])
    hta = next(name for name in rows if name.startswith("Holistic"))
    analyze = next(name for name in rows if "analyze" in name)
    lines = [
        "# How fast a trace of PyTorch's profiler is read",
        "",
        f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())} on {processor()}, {platform.system()} "
        f"{platform.release().split('-')[0]}, without a GPU. Other programs shared the machine, "
        "so processor time is compared, and of several rounds the least. Written "
        "by `scripts/measure/import_speed.py`, which says how to repeat it.",
        "",
        f"The file: {size / 1e6:.0f} MB of JSON as torch.profiler lays it out (gzip: {packed_size / 1e6:.1f} MB), generated by "
        "`benches/import.rs`: operators, launches, kernels with all their arguments, flow arrows, Python functions.",
        "",
        f"- Reading it into a trace, sorted and linked, runs at **{size / 1e6 / reads['read_sound']:.0f} MB/s** on one core; with one "
        f"of 100 names damaged at {size / 1e6 / reads['read_one_name_in_100_damaged']:.0f} MB/s, with every "
        f"operator, kernel and Python function damaged, which is half of the events, at "
        f"{size / 1e6 / reads['read_every_name_damaged']:.0f} MB/s.",
        f"- From the file to the whole report takes **{least(hta, 0) / least(analyze, 0):.1f} times** less processor time "
        f"than HolisticTraceAnalysis {versions[0]} (pandas {versions[1]}) takes to its idle time breakdown, and "
        f"{least(hta, 2) / least(analyze, 2):.1f} times less memory.",
        "",
        f"| reader, least of {ROUNDS} | processor time | MB/s | wall | memory |",
        "|---|---|---|---|---|",
    ]
    for name, of in rows.items():
        cpu = least(name, 0)
        lines.append(f"| {name} | {cpu:.2f} s | {size / 1e6 / cpu:.0f} | {least(name, 1):.2f} s | {least(name, 2):.0f} MiB |")
    lines += ["", "What `cargo bench --bench import` prints, in wall time:", "", "```", benched.strip(), "```", ""]
    with open(target, "w") as file:
        file.write("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
