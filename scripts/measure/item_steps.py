"""A PyTorch training loop that reads its loss back each step, or does not.

    item_steps.py WIDTH item|none STEPS    the steps lie between cudaProfilerStart and cudaProfilerStop
    item_steps.py alone STEPS              every width with and without, in turn, for timing without a recording

Prints `result: {...}` with the wall per step in µs.
"""

import json, sys, time

import torch

WIDTHS = {512: (8, 64), 4096: (8, 512)}  # layers, batch
torch.manual_seed(0)
device = "cuda"


def trainer(width):
    depth, batch = WIDTHS[width]
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)
    inputs, labels = torch.randn(batch, width, device=device), torch.randint(0, 10, (batch,), device=device)

    def run(mode, steps):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            if mode == "item":
                loss.item()
        torch.cuda.synchronize()
        return (time.perf_counter() - begun) / steps * 1e6

    run("item", 10)
    run("none", 10)
    return run


def result(width, mode, steps, microseconds):
    print("result: " + json.dumps({"width": width, "mode": mode, "steps": steps, "us": round(microseconds, 2)}), flush=True)


if sys.argv[1] == "alone":
    steps = int(sys.argv[2])
    trainers = {width: trainer(width) for width in WIDTHS}
    for round_ in range(5):
        for width, run in trainers.items():
            for mode in ("none", "item") if round_ % 2 else ("item", "none"):
                result(width, mode, steps, run(mode, steps))
else:
    width, mode, steps = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    run = trainer(width)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    wall = run(mode, steps)
    torch.cuda.cudart().cudaProfilerStop()
    result(width, mode, steps, wall)
