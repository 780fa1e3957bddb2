#!/usr/bin/env python3
"""Two processes, a GPU each, that add up a tensor with NCCL; one rank comes late to it each time.

    nccl_late_rank.py [--late RANK] [--late-ms MS] [--steps N]

Recorded as one program, `bubble-report record -- python3 nccl_late_rank.py`, the report has to show that the other rank
waits for the late one. Prints `late: {...}` with what to expect.
"""

import argparse, json, os, subprocess, sys, tempfile, time

arguments = argparse.ArgumentParser()
arguments.add_argument("--late", type=int, default=1)
arguments.add_argument("--late-ms", type=float, default=2.0)
arguments.add_argument("--steps", type=int, default=100)
arguments.add_argument("--rank", type=int)
arguments.add_argument("--meet", help="the file through which the ranks find each other")
options = arguments.parse_args()
RANKS = 2


def parent():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *sys.argv, "--meet", f"{folder}/meet", "--rank"]
        ranks = [subprocess.Popen([*command, str(rank)]) for rank in range(RANKS)]
        codes = [rank.wait() for rank in ranks]
    expected = {"rank": options.late, "steps": options.steps, "late_ns": int(options.late_ms * 1e6)}
    print("late: " + json.dumps(expected), flush=True)
    return max(abs(code) for code in codes)


def rank():
    import torch
    import torch.distributed as dist

    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    torch.cuda.set_device(options.rank)
    dist.init_process_group("nccl", init_method=f"file://{options.meet}", rank=options.rank, world_size=RANKS,
                            device_id=torch.device("cuda", options.rank))
    weight = torch.randn(2048, 2048, device="cuda")
    value = torch.randn(2048, 2048, device="cuda")
    total = torch.zeros((), device="cuda")
    for step in range(options.steps + 5):
        gradient = value @ weight
        if options.rank == options.late and step >= 5:
            torch.cuda.synchronize()
            time.sleep(options.late_ms / 1e3)
        dist.all_reduce(gradient)
        total += gradient[0, 0]
        # Both ranks start the next step together.
        torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    dist.destroy_process_group()
    return 0


sys.exit(parent() if options.rank is None else rank())
