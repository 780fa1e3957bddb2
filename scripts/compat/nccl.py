#!/usr/bin/env python3
"""Records nccl_late_rank.py into one trace and checks that the report names the late rank. Needs two GPUs.

    nccl.py OUT_FOLDER

Leaves nccl.json and the compacted recordings in OUT_FOLDER.
"""

import json, pathlib, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "measure"))
import machine


def check(device, late, other):
    """What is wrong with what the report says of the rank that waits."""
    expected = late["steps"] * late["late_ns"]
    waited = {peer["device"]: peer for peer in device.get("peers", [])}.get(other)
    if not waited:
        return [f"GPU {device['device']} waits for nobody"]
    problems = []
    # A sleep takes at least its time; the launch of the late rank comes on top.
    if not 0.9 * expected <= waited["wait_ns"] <= 2.5 * expected:
        problems.append(f"waited {waited['wait_ns']} ns for GPU {other}, and it came {expected} ns late")
    if waited["collectives"] < 0.9 * late["steps"]:
        problems.append(f"GPU {other} came last to {waited['collectives']} collectives, and was late to {late['steps']}")
    return problems


def main():
    out = pathlib.Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = {"machine": machine.versions(), "runs": {}}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        kept = folder / "fixtures"
        kept.mkdir()
        for late_rank in (1, 0):
            trace, report_path = folder / f"late-{late_rank}.bubbles.parquet", folder / f"late-{late_rank}.json"
            spool = folder / f"nccl-late-{late_rank}.bubcap"
            command = [sys.executable, str(HERE / "nccl_late_rank.py"), "--late", str(late_rank)]
            entry = {"command": ["bubble-report", "record", "--", "python3", "nccl_late_rank.py", "--late", str(late_rank)],
                     "problems": []}
            results["runs"][f"rank {late_rank} late"] = entry
            # Once into one trace file, whose size is kept, and once as the spools that become fixtures.
            for target in (trace, spool):
                done = subprocess.run([machine.bubble_report(), "record", "-o", str(target), "--format", "json", "--report",
                                       str(report_path), "--", *command], capture_output=True, text=True, timeout=240)
                late = machine.marked(done.stdout, "late: ")
                if done.returncode or not late:
                    entry["problems"].append(f"exit code {done.returncode}: {done.stderr[-1500:]}")
                    continue
                report = json.loads(report_path.read_text())
                devices = {device["device"]: device for device in report["devices"]}
                other = 1 - late_rank
                entry["late"] = late[0]
                entry["processes"] = len(report.get("processes", []))
                entry["devices"] = [{key: device.get(key) for key in ("device", "span_ns", "busy_ns", "idle_ns", "ops",
                                     "exposed_comm_ns", "waits_for_peer_ns", "peers")} for device in devices.values()]
                if other not in devices or late_rank not in devices:
                    entry["problems"].append(f"the report has GPUs {sorted(devices)}")
                    continue
                entry["problems"] += check(devices[other], late[0], late_rank)
                if late_rank == 0:
                    break  # The other way round is no fixture.
            for path in sorted(folder.glob(f"nccl-late-{late_rank}*.bubcap")):
                subprocess.run([machine.bubble_report(), "convert", str(path), "-o", str(kept / path.name)], check=False)
            print(f"rank {late_rank} late: {'; '.join(entry['problems']) or 'as expected'}", flush=True)
            print(json.dumps(entry.get("devices")), flush=True)
        results["fixtures"] = {path.name: path.stat().st_size for path in sorted(kept.glob("*"))}
        machine.origin(kept, results["machine"], {"nccl-late-1": "bubble-report record -- python3 nccl_late_rank.py --late 1"},
                       "scripts/compat/nccl.py")
        subprocess.run(["tar", "-czf", str(out / "nccl-fixtures.tar.gz"), "-C", str(kept), "."], check=False)
    machine.write_json(out / "nccl.json", results)


main()
