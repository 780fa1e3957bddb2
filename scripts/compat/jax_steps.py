"""Steps of a small network in JAX, for recording and for counting.

    jax_steps.py [--steps N] [--range] [--count]

With --range the measured steps lie between cuProfilerStart and cuProfilerStop. With --count JAX's own profiler counts
what runs on the GPU in the measured steps, and the last line is `counted: {...}`.
"""

import argparse, contextlib, ctypes, glob, gzip, json, os, tempfile

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

arguments = argparse.ArgumentParser()
arguments.add_argument("--steps", type=int, default=40)
arguments.add_argument("--range", action="store_true")
arguments.add_argument("--count", action="store_true")
options = arguments.parse_args()


def loss(weights, inputs, labels):
    for weight in weights:
        inputs = jax.nn.relu(inputs @ weight)
    return jnp.mean((inputs - labels) ** 2)


def train(weights, inputs, labels):
    value, gradients = jax.value_and_grad(loss)(weights, inputs, labels)
    return [weight - 0.01 * gradient for weight, gradient in zip(weights, gradients)], value


def counts(folder):
    """Kernels, copies and memsets on the streams of the devices in what JAX's profiler left."""
    found = {"kernels": 0, "copies": 0, "memsets": 0}
    for path in glob.glob(f"{folder}/**/*.trace.json.gz", recursive=True):
        events = json.load(gzip.open(path))["traceEvents"]
        devices = {event["pid"] for event in events if event.get("name") == "process_name"
                   and "/device:GPU" in event["args"].get("name", "")}
        streams = {(event["pid"], event["tid"]) for event in events if event.get("name") == "thread_name"
                   and event["pid"] in devices and event["args"].get("name", "").startswith("Stream")}
        for event in events:
            if event.get("ph") == "X" and (event["pid"], event.get("tid")) in streams:
                name = event["name"].lower()
                kind = "copies" if name.startswith("memcpy") else "memsets" if name.startswith("memset") else "kernels"
                found[kind] += 1
    return found


@contextlib.contextmanager
def measured():
    driver = ctypes.CDLL("libcuda.so.1")
    if options.count:
        with tempfile.TemporaryDirectory() as folder:
            jax.profiler.start_trace(folder)
            yield
            jax.profiler.stop_trace()
            print("counted: " + json.dumps(counts(folder)), flush=True)
        return
    if options.range:
        driver.cuProfilerStart()
    yield
    if options.range:
        driver.cuProfilerStop()


key = jax.random.PRNGKey(0)
weights = [jax.random.normal(jax.random.fold_in(key, layer), (512, 512)) * 0.05 for layer in range(6)]
inputs, labels = jax.random.normal(key, (64, 512)), jnp.ones((64, 512))
lowered = jax.jit(train).lower(weights, inputs, labels)
try:
    # No trial runs of kernels: they are timed, so their number differs from run to run.
    step = lowered.compile(compiler_options={"xla_gpu_autotune_level": 0})
except Exception:
    step = lowered.compile()
for _ in range(5):
    weights, value = step(weights, inputs, labels)
jax.block_until_ready((weights, value))
with measured():
    for number in range(options.steps):
        weights, value = step(weights, inputs, labels)
        if number % 10 == 9:
            jax.block_until_ready(value)
    jax.block_until_ready((weights, value))
print(f"loss {float(value):.6f}", flush=True)
