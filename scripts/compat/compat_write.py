"""Makes docs/compatibility.md of what run.py measured."""

import json


def counts(found):
    """`1,200 kernels, 40 copies, 3 memsets` of counts, without what is zero."""
    words = (("kernels", "kernels"), ("graphs", "graph launches"), ("copies", "copies"), ("memsets", "memsets"))
    return ", ".join(f"{found[key]:,} {word}" for key, word in words if found.get(key)) or "nothing"


def expected(case):
    said = [f"{who}: {counts(found)}" for who, found in (case.get("expected") or {}).items() if found]
    return "; ".join(said) or "not counted"


def outcome(case):
    if case["problems"]:
        return "**differs**: " + "; ".join(problem.splitlines()[0] for problem in case["problems"])
    said = [f"exit code {case['code']}"]
    if case.get("lost_s") is not None:
        said.append(f"the last {1000 * case['lost_s']:.0f} ms are lost")
    if case.get("steps"):
        said.append(case["steps"])
    quality = case.get("quality", {})
    if quality.get("dropped_records"):
        said.append(f"{quality['dropped_records']:,} records dropped")
    return ", ".join(said)


def rows(results):
    yield "| program | command | recorded | counted otherwise | outcome |"
    yield "|---|---|---|---|---|"
    for case in results["cases"].values():
        recorded = case.get("recorded")
        processes = f"{recorded['processes']} processes: " if recorded and recorded.get("processes", 1) > 1 else ""
        command = " ".join(case.get("command", [])).replace("|", "\\|")
        yield (f"| {case['title']} | `{command}` | {processes}{counts(recorded) if recorded else 'nothing'} | {expected(case)} | "
               f"{outcome(case)} |")


def write(path, document):
    results = json.loads(path.read_text())
    said = results["machine"]
    gpu = said["gpus"][0].split(", ") if said["gpus"] else ["GPU", "?"]
    packages = said["packages"]
    text = [
        "# Which programs can be recorded", "",
        f"Tried on {said['date']} on {gpu[0]} (driver {gpu[1]}, CUDA toolkit {said['toolkit']}), Linux {said['kernel']}, Python "
        f"{said['python']}, PyTorch {packages.get('torch', '?')}, JAX {packages.get('jax', '?')}, CUPTI from `nvidia-cuda-cupti` "
        f"{packages.get('nvidia-cuda-cupti', '?')}.", "",
        "Each program runs under `bubble-report record` unchanged. Its own output has to be what it is without, its exit code has "
        "to come through, and the work recorded has to be the work that is counted otherwise: by the program where it gives the "
        "GPU something to do, by torch.profiler or JAX's profiler in another run of the same steps, or by a bare CUPTI client "
        "(`scripts/measure/bare_inject.c`) in another run of the whole program.", "",
        *rows(results), "",
    ]
    nccl = path.with_name("nccl.json")
    if nccl.exists():
        text += ["## Two processes with NCCL", "", *collectives(json.loads(nccl.read_text())), ""]
    text += [
        f"The programs are in `scripts/compat`. `scripts/compat/run.py measure FOLDER` repeats it; this page is made of `{path.name}` "
        "by `run.py write`.", "",
    ]
    document.write_text("\n".join(text))


def collectives(results):
    gpus = results["machine"]["gpus"]
    yield (f"On {len(gpus)} GPUs, one rank comes late to each all-reduce (`scripts/compat/nccl.py`). Both processes are recorded into "
           "one trace, and the report says for whom a GPU waits:")
    yield ""
    yield "| run | GPU | nothing but collectives | waits for | collectives | outcome |"
    yield "|---|---|---|---|---|---|"
    for name, run in results["runs"].items():
        said = "**differs**: " + "; ".join(problem.splitlines()[0] for problem in run["problems"]) if run["problems"] else "as expected"
        for device in run.get("devices", []):
            peers = device.get("peers") or []
            waits = ", ".join(f"GPU {peer['device']}: {peer['wait_ns'] / 1e6:.1f} ms" for peer in peers) or "nobody"
            times = ", ".join(str(peer["collectives"]) for peer in peers) or ""
            yield (f"| {name} | {device['device']} | {(device.get('exposed_comm_ns') or 0) / 1e6:.1f} ms | {waits} | {times} | {said} |")
