"""The PyTorch loops that the cost of recording is measured on.

    torch_bench.py [--profiler] turns IN OUT

Does a piece of one of them whenever the file IN says its first letter, on the processors of the list behind it, and says in
the file OUT how long it took, ns:

step       a training step of a small network (width 512, 8 layers, batch 64, SGD): bound by its launches, per step
bound      a training step of a wide one (width 4096, batch 512): bound by the GPU, per step
inference  a small network replayed as a CUDA graph, its input copied in and its answer read back, per request
"""

import argparse, os, pathlib, time

import torch

arguments = argparse.ArgumentParser()
arguments.add_argument("--profiler", action="store_true", help="let torch.profiler record")
arguments.add_argument("turns", choices=["turns"])
arguments.add_argument("pipes", nargs=2)
options = arguments.parse_args()
scale = float(os.environ.get("RECORD_BENCH_SCALE", 1))
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
    return (time.perf_counter() - begun) / count * 1e9


sections = {"s": (trainer(512, 8, 64), 20), "b": (trainer(4096, 8, 512), 5), "i": (server(), 200)}
for work, count in sections.values():
    timed(work, max(10, count))
# This thread, and the one that runs the backward pass.
tasks = [task for task in pathlib.Path("/proc/self/task").iterdir() if (task / "comm").read_text().startswith("pt_autograd")]
threads = [os.getpid(), *(int(task.name) for task in tasks)]
if options.profiler:
    from torch.profiler import ProfilerActivity, profile
    profiler = profile(activities=[ProfilerActivity.CUDA])
    profiler.__enter__()
with open(options.pipes[0], "rb", buffering=0) as said, open(options.pipes[1], "w") as answers:
    print(0.0, file=answers, flush=True)
    while line := said.read(256).decode():
        for thread in threads:
            os.sched_setaffinity(thread, [int(number) for number in line[1:].split(",")])
        work, count = sections[line[0]]
        # So that nothing is left of what another program did.
        timed(work, count // 4 + 1)
        print(round(timed(work, int(count * scale) + 1), 2), file=answers, flush=True)
if options.profiler:
    profiler.__exit__(None, None, None)
