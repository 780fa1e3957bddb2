"""The PyTorch loops that the cost of recording is measured on. Prints `result: {...}` for each round of each.

    torch_bench.py [--profiler] [--scale S]

step       a training step of a small network (width 512, 8 layers, batch 64, SGD): bound by its launches, µs per step
bound      a training step of a wide one (width 4096, batch 512): bound by the GPU, µs per step
inference  a small network replayed as a CUDA graph, its input copied in and its answer read back, µs per request
"""

import argparse, json, time

import torch

arguments = argparse.ArgumentParser()
arguments.add_argument("--profiler", action="store_true", help="let torch.profiler record the measured rounds")
arguments.add_argument("--scale", type=float, default=1.0)
options = arguments.parse_args()
torch.manual_seed(0)
device = "cuda"


def network(width, depth, batch):
    layers = [layer for _ in range(depth) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).to(device)
    return model, torch.randn(batch, width, device=device), torch.randint(0, 10, (batch,), device=device)


def trainer(width, depth, batch):
    model, inputs, labels = network(width, depth, batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def server():
    model, inputs, _ = network(1024, 12, 8)
    request = torch.randn(8, 1024).pin_memory()
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                model(inputs)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            answer = model(inputs)

    def serve():
        inputs.copy_(request, non_blocking=True)
        graph.replay()
        return answer.cpu()

    return serve


def timed(work, count):
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(count):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / count * 1e6


sections = [("step", trainer(512, 8, 64), 150), ("bound", trainer(4096, 8, 512), 40), ("inference", server(), 1000)]
for _, work, count in sections:
    timed(work, max(10, count // 10))
torch.cuda.synchronize()
profiler = None
if options.profiler:
    from torch.profiler import ProfilerActivity, profile
    profiler = profile(activities=[ProfilerActivity.CUDA])
    profiler.__enter__()
    for _, work, count in sections:
        timed(work, 5)
for round_ in range(3):
    for name, work, count in sections:
        count = max(3, int(count * options.scale))
        value = timed(work, count)
        print("result: " + json.dumps({"section": name, "us": round(value, 2), "count": count}), flush=True)
if profiler:
    profiler.__exit__(None, None, None)
