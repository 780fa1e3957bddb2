"""Steps of a small network in PyTorch, for recording and for counting.

    torch_steps.py eager|graphs|compile|loader [--steps N] [--range [profiler|nvtx]] [--count]

With --range only the measured steps lie between cudaProfilerStart and cudaProfilerStop, or in an NVTX range `measured`
and each step in a range `step`. With --count torch.profiler counts what runs on the GPU, from the start of CUDA to the
end or, with --range, in the measured steps, and the last line is `counted: {...}`. The same seed and the same steps make
the same work.
"""

import argparse, collections, contextlib, json, pathlib, tempfile

import torch

arguments = argparse.ArgumentParser()
arguments.add_argument("mode", choices=["eager", "graphs", "compile", "loader"])
arguments.add_argument("--steps", type=int, default=40)
arguments.add_argument("--range", nargs="?", const="profiler", choices=["profiler", "nvtx"])
arguments.add_argument("--count", action="store_true")
options = arguments.parse_args()
torch.manual_seed(0)
device = "cuda"


class Samples(torch.utils.data.Dataset):
    """Random samples that workers make."""

    def __len__(self):
        return options.steps * 32

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(512, generator=generator), index % 10


def profiler():
    from torch.profiler import ProfilerActivity, profile
    return profile(activities=[ProfilerActivity.CUDA])


def counts(profiled):
    """Kernels, copies and memsets of a profile."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "trace.json"
        profiled.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    found = collections.Counter(event.get("cat") for event in events if event.get("ph") == "X")
    return {"kernels": found["kernel"], "copies": found["gpu_memcpy"], "memsets": found["gpu_memset"]}


@contextlib.contextmanager
def measured():
    """The part that --range marks."""
    torch.cuda.synchronize()
    mark = None if options.count else options.range
    if mark == "profiler":
        torch.cuda.cudart().cudaProfilerStart()
    elif mark == "nvtx":
        torch.cuda.nvtx.range_push("measured")
    if options.range and options.count:
        with profiler() as profiled:
            yield
            torch.cuda.synchronize()
        print("counted: " + json.dumps(counts(profiled)), flush=True)
    else:
        yield
        torch.cuda.synchronize()
    if mark == "profiler":
        torch.cuda.cudart().cudaProfilerStop()
    elif mark == "nvtx":
        torch.cuda.nvtx.range_pop()


def marked(step):
    """The step in a range of its own, where ranges are NVTX's."""
    if options.range != "nvtx":
        return step

    def within(*batch):
        with torch.cuda.nvtx.range("step"):
            return step(*batch)
    return within


def run():
    model = torch.nn.Sequential(
        *[layer for _ in range(6) for layer in (torch.nn.Linear(512, 512), torch.nn.ReLU())], torch.nn.Linear(512, 10)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=True)
    inputs, labels = torch.randn(32, 512, device=device), torch.randint(0, 10, (32,), device=device)
    net = torch.compile(model) if options.mode == "compile" else model

    def step(inputs, labels):
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    if options.mode in ("eager", "compile"):
        for _ in range(5):
            step(inputs, labels)
        with measured():
            one = marked(step)
            for number in range(options.steps):
                loss = one(inputs, labels)
                if number % 10 == 9:
                    loss.item()
    elif options.mode == "graphs":
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                step(inputs, labels)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            loss = step(inputs, labels)
        with measured():
            for number in range(options.steps):
                inputs.normal_()
                graph.replay()
                if number % 10 == 9:
                    loss.item()
    else:
        loader = torch.utils.data.DataLoader(Samples(), batch_size=32, num_workers=3, pin_memory=True)
        with measured():
            for batch, targets in loader:
                loss = step(batch.to(device, non_blocking=True), targets.to(device, non_blocking=True))
            loss.item()
    torch.cuda.synchronize()
    # The same steps give the same loss, recorded or not.
    print(f"loss {loss.item():.6f}", flush=True)
    torch.cuda.synchronize()


if __name__ == "__main__":
    if options.count and not options.range:
        with profiler() as whole:
            run()
        print("counted: " + json.dumps(counts(whole)), flush=True)
    else:
        run()
