"""The document and the plots of host_device_sync.py. Every number in them is computed here from the two JSON files."""

import json, os, statistics, textwrap

from svg import Axis, plot

median = statistics.median
NO_WAIT = "none"
WAIT_NAMES = {
    "sync": "blocking copy of 4 bytes, pageable",
    "sync-pinned": "async copy of 4 bytes, pinned, then stream sync",
    "event": "async copy of 4 bytes, pinned, then event sync",
    "device": "device sync alone",
    "stream": "stream sync alone",
}
# A miss above this share of the span is listed, and wants a reason.
MISS = 0.08


def spread(times):
    """The shortest and the longest of some times in ns, as µs; once where both read the same."""
    ends = [f"{end / 1000:.1f}" for end in (min(times), max(times))]
    return " to ".join(dict.fromkeys(ends))


def micro(ns):
    return f"{ns / 1000:.2f}" if abs(ns) < 100_000 else f"{ns / 1000:.1f}"


def percent(part):
    return f"{100 * part:.1f} %"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


class Data:
    def __init__(self, folder):
        self.kept = json.loads((folder / "walls.json").read_text())
        self.cells = {name: cell for name, cell in self.kept["cells"].items() if cell["walls_ns"]}
        self.failed = {name: cell["failed"] for name, cell in self.kept["cells"].items() if "failed" in cell}
        every = json.loads((folder / "reports.json").read_text())["reports"]
        self.reports = {name: [report for report in some if "failed" not in report] for name, some in every.items()}

    def walls(self, name):
        """Unprofiled walls per iteration, in nanoseconds."""
        cell = self.cells[name]
        return [wall / cell["iterations"] for wall in cell["walls_ns"]]

    def wall(self, name):
        return median(self.walls(name))

    def profiled(self, name):
        cell = self.cells[name]
        return median(cell["profiled_walls_ns"]) / cell["iterations"]

    def inflation(self, name):
        return self.profiled(name) / self.wall(name)

    def has(self, *names):
        return all(name in self.cells and self.reports.get(name) for name in names)

    def report(self, name):
        return self.reports[name][0]

    def of_device(self, name, *path):
        """A figure of the device in the first recording, per iteration."""
        value = self.report(name)["devices"][0]
        for step in path:
            value = value.get(step, 0)
        return value / self.report(name)["iterations_run"]

    def kernel(self, name):
        """How long a kernel took, in the recording without waits."""
        device = self.report(name)["devices"][0]
        return device["busy_ns"] / device["ops"]


class Pair:
    """A variant, what the replay says of it with a change, and the variant that has the change."""

    def __init__(self, data, pair):
        self.slower, self.faster, self.change = pair["slower"], pair["faster"], pair["change"]
        report = data.report(self.slower)
        self.withheld = report["replay"]["withheld"]
        self.unchanged_error = report["replay"]["unchanged_error"]
        span = report["devices"][0]["span_ns"]
        gains = [answer["gain_ns"] for answer in report["replay"]["what_if"] if answer["change"] == self.change]
        self.predicted = gains[0] / span if gains else None
        self.recorded = 1 - data.of_device(self.faster, "span_ns") / data.of_device(self.slower, "span_ns")
        self.unprofiled = 1 - data.wall(self.faster) / data.wall(self.slower)
        removed = set(self.change.removeprefix("remove=").split(",")) if self.change.startswith("remove=") else set()
        waits = [call for call in report["sync_calls"] if call["api"] in removed]
        self.bubbles = sum(call["bubbles_drained_ns"] for call in waits) / span if waits else None
        self.api = sum(call["blocked_ns"] for call in waits) / span if waits else None

    @property
    def name(self):
        workload, slower, label = self.slower.split("/")
        return f"{workload} {label}: {slower} → {self.faster.split('/')[1]}"

    def against(self, measured):
        return self.predicted - getattr(self, measured)


def save(path, text):
    path.write_text(text, encoding="utf-8", newline="\n")


def filled(text):
    """The text with its paragraphs filled to 120 columns; tables, lists, code, pictures and headings stay."""
    def one(block):
        plain = not block.startswith(("|", "#", "!", "```", "- "))
        return textwrap.fill(block.strip(), 120, break_long_words=False, break_on_hyphens=False) if plain else block.strip("\n")

    return "\n\n".join(one(block) for block in text.split("\n\n") if block.strip()) + "\n"


def spread_of(errors):
    """Mean, 95th percentile and worst of the sizes."""
    sizes = sorted(map(abs, errors))
    return statistics.mean(sizes), sizes[min(len(sizes) - 1, round(0.95 * (len(sizes) - 1)))], sizes[-1]


def readback(variant, kernels, length):
    return f"scalar-readback/{variant}/k{kernels}-{length}us"


def all_lengths(data):
    """Kernels per iteration and kernel lengths that were recorded without waits, in the order of the plan."""
    found = []
    for name in data.cells:
        workload, variant, label = name.split("/")
        if workload == "scalar-readback" and variant == NO_WAIT and data.has(name):
            kernels, length = label.removeprefix("k").removesuffix("us").split("-")
            found.append((int(kernels), int(length)))
    return found


def against(kind, kernels, length):
    """The cell with a kind of wait, and the one without."""
    label = f"k{kernels}-{length}us"
    if kind == "device":
        return f"timing/device-sync/{label}", f"timing/none/{label}"
    if kind == "stream":
        return f"planted/sync/{length}us", f"planted/launch-bound/{length}us"
    return readback(kind, kernels, length), readback(NO_WAIT, kernels, length)


def costs(data):
    """Nanoseconds that a kind of wait adds to an iteration, least, median and greatest, by (kind, kernels, length)."""
    found = {}
    lengths = {*all_lengths(data), *((1, length) for length in [3, 30, 300])}
    for kernels, length in sorted(lengths):
        for kind in WAIT_NAMES:
            with_wait, without = against(kind, kernels, length)
            if (kind != "stream" or kernels == 1) and data.has(with_wait, without):
                walls, base = data.walls(with_wait), data.wall(without)
                found[kind, kernels, length] = (min(walls) - base, median(walls) - base, max(walls) - base, base)
    return found


def waits(data, found, folder, link):
    rows, series = [], {WAIT_NAMES[kind]: [] for kind in WAIT_NAMES}
    for kernels, length in all_lengths(data):
        base = readback(NO_WAIT, kernels, length)
        row = [kernels, micro(data.kernel(base)), micro(data.wall(base))]
        for kind in WAIT_NAMES:
            cost = found.get((kind, kernels, length))
            row.append(f"{cost[1] / 1000:.1f} ({cost[0] / 1000:.1f} to {cost[2] / 1000:.1f})" if cost else "")
            if cost and kernels == 1:
                series[WAIT_NAMES[kind]].append((data.kernel(base) / 1000, cost[1] / 1000))
        rows.append(row)
    # One without the long texts, so that the legend has room.
    short = dict(zip(["blocking copy", "pinned + stream sync", "pinned + event sync", "device sync", "stream sync"],
                     series.values()))
    top = 5 * (1 + int(max(y for points in short.values() for _, y in points) // 5))
    save(folder / "waits.svg", plot(
        "What one wait adds to an iteration of one kernel", Axis("kernel, µs", 1, 20_000, log=True),
        Axis("added per iteration, µs", 0, top), short, lines=short))
    usual = {kind: [cost[1] for (of, _, length), cost in found.items() if of == kind and length < 1_000]
             for kind in WAIT_NAMES}
    told = "\n".join(f"- {WAIT_NAMES[kind]}: {median(some) / 1000:.1f} µs ({min(some) / 1000:.1f} to {max(some) / 1000:.1f})"
                     for kind, some in usual.items() if some)
    long = [cost[1] for (kind, _, length), cost in found.items() if length >= 1_000]
    return f"""## What one wait costs

An iteration launches its kernels, one after the other, and then waits once, and the host decides. The last five columns
are the microseconds that the wait (with its copy, where it has one) adds to the iteration: the median wall with it, less
the median wall of the same kernels launched without any (`none`, which cannot decide anything), and in brackets the
same for the least and greatest wall. Kernel lengths are as recorded, without the gaps between kernels. The waits without a
copy are those of the workloads `timing` (device) and `planted` (stream), against their own variants without waits, whose
kernels are of about the same length; the others are of `scalar-readback`.

{table(["kernels per wait", "kernel, µs", "iteration without waits, µs", *WAIT_NAMES.values()], rows)}

![What one wait adds]({link}/waits.svg)

Median of the rows with kernels below 1 ms, least and greatest row:

{told}

The kind of wait hardly matters, nor does it help to pin the four bytes or to wait for an event; a wait without a copy is
cheaper. Nor does the number of launches before the wait matter much: it is the emptied queue that costs. A row that falls
out of its column by several microseconds is one of long iterations, or one that is bound by launching, where the noise of
the host is as large. With kernels of about 1 ms and more the figure is {min(long) / 1000:.0f} to {max(long) / 1000:.0f} µs over all kinds.
"""


def launches(data, folder, link):
    rows, series = [], {}
    for kernels, length in all_lengths(data):
        name = readback(NO_WAIT, kernels, length)
        report = data.report(name)
        wall, kernel = data.wall(name) / kernels, data.kernel(name)
        rows.append([kernels, micro(kernel), micro(wall), micro(wall - kernel),
                     micro(report["launches"]["call_p50_ns"]), micro(data.profiled(name) / kernels)])
        series.setdefault(f"{kernels} per iteration", []).append((kernel / 1000, (wall - kernel) / 1000))
    save(folder / "launches.svg", plot(
        "What one launch adds to its kernel, nothing waiting", Axis("kernel, µs", 1, 20_000, log=True),
        Axis("wall per launch less kernel, µs", 0, 1 + int(max(y for points in series.values() for _, y in points))), series, lines=series))
    short = [data.wall(readback(NO_WAIT, kernels, length)) / kernels for kernels, length in all_lengths(data) if length == 1]
    lengths = [data.kernel(readback(NO_WAIT, kernels, length)) for kernels, length in all_lengths(data) if length == 1]
    medium = [data.wall(readback(NO_WAIT, kernels, length)) / kernels - data.kernel(readback(NO_WAIT, kernels, length))
              for kernels, length in all_lengths(data) if 10 <= length <= 300]
    return f"""## What one launch costs

The same kernels, launched without waits. As long as the kernel is longer than the call that launches it, the queue is
never empty, and a launch adds only what the device takes from one kernel to the next.

{table(["kernels per iteration", "kernel, µs", "wall per launch, µs", "less the kernel, µs", "median launch call while recorded, µs", "wall per launch while recorded, µs"], rows)}

![What one launch adds]({link}/launches.svg)

With kernels of {min(lengths) / 1000:.1f} to {max(lengths) / 1000:.1f} µs a launch costs {min(short) / 1000:.1f} to {max(short) / 1000:.1f} µs of wall: the host's rate
of launching, not the GPU. With kernels of about 10 to 300 µs it costs {min(medium) / 1000:.2f} to {max(medium) / 1000:.2f} µs
above the kernel.
"""


def matters(data, found, folder, link):
    series, rows = {}, []
    points = []
    for (kind, kernels, length), (_, cost, _, base) in found.items():
        if kind in ("sync", "sync-pinned", "event"):
            points.append((base / 1000, cost / base, kind, kernels))
            if cost > 0:
                series.setdefault(f"{kernels} per wait", []).append((base / 1000, 100 * cost / base, kind))
    for limit in (0.10, 0.05, 0.02, 0.01):
        above = max(point[0] for point in points if point[1] >= limit)
        below = [point[0] for point in points if point[0] > above]
        usual = median(cost for _, cost, _, _ in found.values())
        rows.append([f"{100 * limit:.0f} %", f"{above:.0f}", f"{min(below):.0f}" if below else "none measured",
                     f"{usual / limit / 1000:.0f}"])
    save(folder / "share.svg", plot(
        "Share of a wait, by the work between two waits",
        Axis("iteration without waits, µs", 1, 20_000, log=True), Axis("added by the wait, %", 0.1, 1_000, log=True),
        series, guides=[((1, 1), (20_000, 1), "1 %")]))
    one = rows[-1]
    return f"""## When a wait stops mattering

What counts is how much the GPU has to do between two waits, whether in one kernel or in forty. For the three variants
that read the value back, the longest iteration for which the wait still added the share or more, the next longer ones
that were measured (all of them below), and what a wait of the usual cost, the median of the first table, would say.

{table(["share of the iteration", "still reached at, µs", "not at, µs and longer", "usual cost divided by share, µs"], rows)}

![Share of a wait]({link}/share.svg)

A wait adds less than 1 % once the work between two waits is longer than something between {one[1]} and {one[2]} µs: one
kernel of that length, or as many shorter ones as fill it. This is the length to aim for when batching iterations.
"""


def recovery(data, plan, folder, link):
    variants = ["async", "graph", "mapped-flag", "device-control", "persistent"]
    cells = [(kernels, length) for kernels, length in all_lengths(data)
             if data.has(*(readback(variant, kernels, length) for variant in variants))]
    rows, series = [], {variant: [] for variant in variants}
    shares = {variant: [] for variant in variants}
    for place, (kernels, length) in enumerate(cells):
        walls = {variant: data.wall(readback(variant, kernels, length)) for variant in ["sync", NO_WAIT, *variants]}
        lost = walls["sync"] - walls[NO_WAIT]
        row = [kernels, micro(data.kernel(readback(NO_WAIT, kernels, length))), micro(walls["sync"]), micro(walls[NO_WAIT])]
        for variant in variants:
            share = (walls["sync"] - walls[variant]) / lost
            shares[variant].append(share)
            series[variant].append((place, 100 * share))
            row.append(f"{micro(walls[variant])} ({100 * share:.0f} %)")
        rows.append(row)
    names = [(place, f"{kernels} × {data.kernel(readback(NO_WAIT, kernels, length)) / 1000:.1f} µs")
             for place, (kernels, length) in enumerate(cells)]
    every = [y for points in series.values() for _, y in points]
    save(folder / "recovery.svg", plot(
        "Part of the waits' cost recovered", Axis("kernels per iteration × kernel", -0.5, len(cells) - 0.5, ticks=names),
        Axis("recovered, %", 0, 20 * (1 + int(max(every) // 20))), series,
        guides=[((-0.5, 100), (len(cells) - 0.5, 100), "as without waits")]))
    told = "; ".join(f"`{variant}` {100 * min(some):.0f} to {100 * max(some):.0f} %" for variant, some in shares.items())
    return f"""## What the other shapes recover

Microseconds per iteration for the same answer, and in brackets the part of what `sync` loses against `none` that the
shape recovers. `async` decides four iterations late, on pinned memory and events; `graph` replays ten iterations as one
graph and decides once per graph; with `mapped-flag` the device writes the value to host memory that the host polls; with
`device-control` a conditional node decides on the device; `persistent` is one cooperative kernel for the whole solve.

{table(["kernels per iteration", "kernel, µs", "`sync`", "`none`", *(f"`{variant}`" for variant in variants)], rows)}

![Recovered]({link}/recovery.svg)

Recovered: {told}. More than 100 % means that the shape also saves what launching costs, or what the device takes from
one kernel to the next.
"""


GAPS = "time of the device's own between queued operations"
BUSY = "operations of another length"
CALLS = "launching calls of another length"
RECORDER = "variants that recording, or noise, slowed by different amounts"
UNKNOWN = "none of these"


def reason(data, pair):
    """What goes with a miss, by name and with figures: the first of these that is large enough and points its way."""
    miss = pair.against("recorded")
    ends = {"slower": pair.slower, "faster": pair.faster}
    gaps = {end: data.of_device(name, "idle_by_root", "dispatch") for end, name in ends.items()}
    busy = {end: data.of_device(name, "busy_ns") for end, name in ends.items()}
    calls = {end: data.report(name)["launches"]["call_p50_ns"] for end, name in ends.items()}
    inflation = {end: data.inflation(name) for end, name in ends.items()}
    # What the prediction says too much, per iteration.
    excess = miss * data.of_device(pair.slower, "span_ns")
    if excess < 0 and gaps["slower"] - gaps["faster"] > -0.5 * excess:
        return GAPS, (f"idle with work queued (`dispatch`) {micro(gaps['slower'])} µs per iteration, in the faster one "
                      f"{micro(gaps['faster'])}")
    if (busy["faster"] - busy["slower"]) / excess > 0.5:
        return BUSY, f"busy {micro(busy['slower'])} µs per iteration, in the faster one {micro(busy['faster'])}"
    if (calls["faster"] > 1.1 * calls["slower"]) if excess > 0 else (calls["slower"] > 1.1 * calls["faster"]):
        return CALLS, f"median launching call {micro(calls['slower'])} µs, in the faster one {micro(calls['faster'])}"
    if (inflation["faster"] - inflation["slower"]) * miss > 0.05 * abs(miss):
        return RECORDER, (f"profiled wall over unprofiled {inflation['slower']:.2f}, of the faster one "
                          f"{inflation['faster']:.2f}")
    return UNKNOWN, ""


def replayed(data, plan, folder, link):
    pairs = [Pair(data, pair) for pair in plan.pairs if data.has(pair["slower"], pair["faster"])]
    said = [pair for pair in pairs if pair.predicted is not None]
    withheld = [pair for pair in pairs if pair.predicted is None]
    rows = []
    for name, measured in [("the recordings", "recorded"), ("the unprofiled walls", "unprofiled")]:
        mean, p95, worst = spread_of([pair.against(measured) for pair in said])
        rows.append([f"replay, all pairs, against {name}", len(said), percent(mean), percent(p95), percent(worst)])
    naive = [pair for pair in said if pair.api is not None]
    # Each answer over the same pairs.
    for name, figure in [("replay", "predicted"), ("naive: idle time that began in these calls", "bubbles"),
                         ("naive: time in these calls", "api")]:
        mean, p95, worst = spread_of([getattr(pair, figure) - pair.recorded for pair in naive])
        rows.append([f"{name}, pairs that remove waits, against the recordings", len(naive), percent(mean), percent(p95),
                     percent(worst)])
    missed = sorted((pair for pair in said if abs(pair.against("recorded")) > MISS),
                    key=lambda pair: -abs(pair.against("recorded")))
    reasons = [reason(data, pair) for pair in missed]
    misses = [[pair.name, percent(pair.predicted), percent(pair.recorded), percent(pair.unprofiled),
               ": ".join(part for part in why if part)] for pair, why in zip(missed, reasons)]
    counted = "\n".join(f"- {sum(why[0] == name for why in reasons)}: {name}{told}" for name, told in [
        (GAPS, ". The replay keeps such gaps as they were unless what parted two kernels is taken away"),
        (BUSY, ". The replay keeps the length of every operation"),
        (CALLS, ". The two recordings are two runs on a noisy host; where the faster variant is bound by launching, its "
                "span is the sum of its calls, and the replay only knows those of its own recording. The launch "
                "of a new graph is taken to last as long as one launch and 0.75 µs for each further node"),
        (RECORDER, ". The measure itself is off here: compare the unprofiled column"),
        (UNKNOWN, "")] if any(why[0] == name for why in reasons))
    behind = [data.kernel(pair.faster) for pair in withheld]
    variants = sorted({pair.slower.split("/")[1] for pair in withheld})
    nothing = [pair for pair in said if pair.predicted < 0.001]
    nothing_told = table(["pair", "change", "`dispatch`, µs per iteration", "in the faster"], [
        [pair.name, f"`{pair.change}`", micro(data.of_device(pair.slower, "idle_by_root", "dispatch")),
         micro(data.of_device(pair.faster, "idle_by_root", "dispatch"))] for pair in nothing])
    withheld_told = table(["pair", "error of the replay of the unchanged recording", "recorded", "unprofiled"], [
        [pair.name, percent(pair.unchanged_error), percent(pair.recorded), percent(pair.unprofiled)] for pair in withheld])
    long = [pair for pair in said if pair.slower.startswith(("scalar-readback/", "timing/device", "planted/"))
            and not pair.slower.endswith(("-1us", "/1us")) and "/async/" not in pair.slower]
    mean, p95, worst = spread_of([pair.against("recorded") for pair in long])
    every = [[pair.name, f"`{pair.change.replace('remove=', '−').replace(',', ' −')}`"[:90],
              percent(pair.predicted) if pair.predicted is not None else "withheld", percent(pair.recorded), percent(pair.unprofiled),
              percent(pair.against("recorded")) if pair.predicted is not None else ""] for pair in pairs]
    series = {}
    for pair in said:
        workload = pair.slower.split("/")[0]
        series.setdefault(workload, []).append((100 * pair.recorded, 100 * pair.predicted, pair.name))
    low = 10 * (min(int(x // 10) for points in series.values() for x, _, _ in points))
    save(folder / "replay.svg", plot(
        "Gain predicted by the replay against gain measured", Axis("measured between the recordings, % of the span", low, 90),
        Axis("predicted, % of the span", low, 90), series,
        guides=[((low, low), (90, 90), "equal"), ((low, low + 8), (82, 90), ""), ((low + 8, low), (90, 82), "8 % off")]))
    worst_pair = missed[0] if missed else max(said, key=lambda pair: abs(pair.against("recorded")))
    text = f"""## What the replay predicts, and what was measured

For each of {len(pairs)} pairs of variants, the slower one's recording is replayed with the change that makes it the
faster one, and the gain, as part of the recorded span, is compared with what the faster one gained: by the spans of the
two recordings, and by the unprofiled walls. Errors are differences of these parts, in points of the span.

{table(["answer", "pairs", "mean error", "95th percentile", "worst"], rows)}

![Predicted against measured]({link}/replay.svg)

{len(withheld)} of {len(pairs)} answers ({percent(len(withheld) / len(pairs))}) were withheld, because the replay of the
unchanged recording was more than 5 % off:

{withheld_told}

All of them are of {' and '.join(f'`{variant}`' for variant in variants)}, with kernels of {spread(behind)} µs.

Where waits are removed around kernels of 3 µs and more ({len(long)} pairs of `scalar-readback` but `async`,
`timing device-sync` and `planted`), the mean error is {percent(mean)}, the 95th percentile {percent(p95)}, the worst
{percent(worst)}. Misses of more than {100 * MISS:.0f} points against the recordings, the worst first:

{table(["pair", "predicted", "recorded", "unprofiled", "what goes with it in the recordings"], misses)}

By what goes with them (the first that fits, in this order, large enough and in the direction of the miss):

{counted}
"""
    if nothing:
        text += f"""
Changes that gain nothing by the replay: the host was ahead of the device all the time, so that time saved on the host
saves nothing, and what these calls cost the device between two kernels (`dispatch`, the idle time with work already
queued) is kept:

{nothing_told}
"""
    return text, f"""## All pairs

Gains as parts of the recorded span; `−` stands before a call that is removed. The error is predicted less recorded.

{table(["pair", "change", "predicted", "recorded", "unprofiled", "error"], every)}
""", pairs, said, worst_pair


def inflated(data, folder, link):
    by_variant = {}
    for name, cell in data.cells.items():
        walls = cell["walls_ns"]
        by_variant.setdefault((cell["workload"], cell["variant"]), []).append(
            (data.inflation(name), cell["label"], max(walls) / min(walls)))
    rows, series = [], {}
    for place, ((workload, variant), some) in enumerate(by_variant.items()):
        least, greatest = min(some), max(some)
        rows.append([workload, f"`{variant}`", len(some), f"{median(one[0] for one in some):.3f}",
                     f"{least[0]:.3f} ({least[1]})", f"{greatest[0]:.3f} ({greatest[1]})",
                     f"{median(one[2] for one in some):.3f}", f"{max(one[2] for one in some):.3f}"])
        series.setdefault(workload, []).extend((one[0], -place, f"{variant} {one[1]}") for one in some)
    ratios = [x for points in series.values() for x, _, _ in points]
    names = [(-place, f"{workload} {variant}") for place, (workload, variant) in enumerate(by_variant)]
    save(folder / "inflation.svg", plot(
        "Profiled wall over unprofiled wall", Axis("ratio", min(ratios) - 0.05, max(ratios) + 0.05),
        Axis("", 0.7 - len(names), 0.7, ticks=names), series, guides=[((1, 0.7 - len(names)), (1, 0.7), "")], left=210, height=660))
    def group(name, wanted):
        some = [data.inflation(cell) for cell in data.cells if wanted(data.wall(cell))]
        return f"{name} the median ratio is {median(some):.3f} and the greatest {max(some):.3f} ({len(some)} cells)"

    return f"""## What recording costs each variant

The profiled wall over the median unprofiled wall, in processes of their own. The last two columns are the noise to read it against: the
greatest unprofiled wall of a cell over its least.

{table(["workload", "variant", "cells", "median", "least", "greatest", "noise, median cell", "noise, worst cell"], rows)}

![Profiled over unprofiled]({link}/inflation.svg)

{group("With iterations of 300 µs and more", lambda wall: wall >= 300_000)}; {group("with 30 to 300 µs", lambda wall: 30_000 <= wall < 300_000)};
{group("with less", lambda wall: wall < 30_000)}. Each call, each operation and each node of a graph is recorded at a cost of its own, so
that recording costs most where an iteration is short, and where many nodes follow each other without a gap. A ratio below 1 is noise of the host, not a gain.
"""


def surprises(data, found, pairs, said, worst_pair):
    def cost(kind, kernels, length):
        return found[kind, kernels, length][1] / 1000

    pinned = [cost("sync", *at) - cost("sync-pinned", *at) for at in all_lengths(data) if at[1] < 1_000]
    alone = [found[kind, 1, length][1] / 1000 for kind, _, length in found if kind in ("device", "stream") and length < 1_000
             and (kind, 1, length) in found]
    lines = [
        f"Pinning the four bytes is worth {median(pinned):.1f} µs per read-back in the median (by row {min(pinned):.1f} to "
        f"{max(pinned):.1f}, mostly noise): the blocking copy into pageable memory is hardly worse than the advice against it.",
        f"A wait alone, without a copy, costs one kernel {min(alone):.0f} to {max(alone):.0f} µs; reading four bytes back roughly doubles it.",
    ]
    at = (1, 10)
    lines.append(
        f"Deciding late (`async`) recovers the least of all shapes: {data.wall(readback('async', *at)) / 1000:.1f} µs "
        f"against {data.wall(readback('sync', *at)) / 1000:.1f} with `sync` and {data.wall(readback(NO_WAIT, *at)) / 1000:.1f} without waits "
        f"(one kernel of {data.kernel(readback(NO_WAIT, *at)) / 1000:.1f} µs). The queue is never empty, but copy, event and next kernel take the device "
        f"{data.of_device(readback('async', *at), 'idle_by_root', 'dispatch') / 1000:.1f} µs of idle time per iteration.")
    events, untimed = "timing/events/k1-10us", "timing/none/k1-10us"
    if data.has(events, untimed):
        lines.append(
            f"Two events around each kernel are not free for the device: {data.wall(events) / 1000:.1f} µs per step against "
            f"{data.wall(untimed) / 1000:.1f} without (kernels of {data.kernel(untimed) / 1000:.1f} µs).")
    lines.append(
        f"A decision on the device is not free either: `device-control` takes "
        f"{data.wall(readback('device-control', *at)) / 1000:.1f} µs where `none` takes {data.wall(readback(NO_WAIT, *at)) / 1000:.1f} and `persistent` "
        f"{data.wall(readback('persistent', *at)) / 1000:.1f}.")
    lines.append(f"The replay's worst answer is about {worst_pair.name}: {percent(worst_pair.predicted)} predicted, "
                 f"{percent(worst_pair.recorded)} recorded.")
    return "## What surprised\n\n" + "\n".join(f"- {line}" for line in lines) + "\n"


def short(data, found, said, pairs):
    """The document in four sentences."""
    usual = {kind: median(cost[1] for (of, _, length), cost in found.items() if of == kind and length < 1_000)
             for kind in WAIT_NAMES}
    reads = [usual[kind] / 1000 for kind in ("sync", "sync-pinned", "event")]
    alone = [usual[kind] / 1000 for kind in ("device", "stream")]
    points = [(base, cost / base) for (kind, _, _), (_, cost, _, base) in found.items() if kind in WAIT_NAMES]
    reached = max(base for base, share in points if share >= 0.01)
    below = min(base for base, _ in points if base > reached)
    mean, p95, worst = spread_of([pair.against("recorded") for pair in said])
    return f"""- Reading four bytes back and waiting for them costs {min(reads):.1f} to {max(reads):.1f} µs each time (medians by kind), by whichever calls; waiting without a
  copy {min(alone):.1f} to {max(alone):.1f} µs. The length of the kernels below 1 ms and the number of launches hardly matter.
- A wait costs less than 1 % once there is work of {reached / 1e6:.1f} to {below / 1e6:.1f} ms between two waits.
- A graph, or one persistent kernel, recovers nearly all of it or more; deciding late recovers the least.
- The replay misses what was recorded by {percent(mean)} of the span on average ({percent(p95)} at the 95th percentile, {percent(worst)} at
  worst), and withholds {len(pairs) - len(said)} of {len(pairs)} answers; where it misses, and why, is listed below."""


def write(plan, folder, document, plots):
    data = Data(folder)
    plots.mkdir(parents=True, exist_ok=True)
    link = os.path.relpath(plots, document.parent)
    kept, machine = data.kept, data.kept["machine"]
    recorder = machine["doctor"]["recording"]
    # The first is the one that was loaded; folders are not kept.
    libraries = [library["release"] for library in machine["doctor"]["libraries"] if library["path"] == recorder["library"]][:1]
    driver = machine["gpu"].split(", ")[1]
    answers = {}
    for cell in data.cells.values():
        answers.setdefault((cell["workload"], cell["label"].removesuffix("-whole")), set()).add(cell["answer"])
    differing = [key for key, some in answers.items() if len(some) > 1]
    unreliable = [name for name, some in data.reports.items() if any(not report["quality"]["idle_reliable"] for report in some)]
    dropped = sum(report["quality"]["dropped_records"] for some in data.reports.values() for report in some)
    rounds = {profiled: [round["whole"] for round in kept["rounds"] if round["profiled"] is profiled] for profiled in (False, True)}
    walls = sorted({len(cell["walls_ns"]) for cell in data.cells.values()})
    found = costs(data)
    replay, all_pairs, pairs, said, worst_pair = replayed(data, plan, plots, link)
    head = f"""# What waiting for the GPU costs, on an H200

Measured on {kept['date'][:10]} on one {kept['device']} (driver {driver}, CUDA {kept['driver_cuda'] // 1000}.{kept['driver_cuda'] % 1000 // 10}), {machine['processors']} cores of an
{machine['processor']}, {machine['system']}, CUPTI {recorder['version']} ({', '.join(libraries)}). Written by `scripts/measure/host_device_sync.py` from
[`walls.json`]({link}/walls.json), the walls as they were measured, and [`reports.json`]({link}/reports.json), what
`bubble-report analyze` says of each recording.

{short(data, found, said, pairs)}

## How it was measured

{len(data.cells)} cells, each a variant of a workload of `bubble-report list` with its options, {len(rounds[False])} rounds unprofiled
({sum(rounds[False])} of them whole, so {' or '.join(map(str, walls))} walls per cell) and {len(rounds[True])} profiled, in {kept['seconds']:.0f} s. Every repetition is a process of its own, and
rounds go over all cells in turn. Medians are shown. The host is shared and noisy: differences of a microsecond between two rows mean
nothing, and with so few repetitions the ranges shown are least and greatest, not confidence intervals.


Cells are named by workload, variant and size: `k4-10us` has iterations (steps, in `timing`) of four kernels of about 10 µs, `-whole` one graph for the
whole run, and `steps1000` kernels with an inner loop of that many steps.

Within every workload and size {'all variants gave the same answer' if not differing else f'the answers differ for {differing}'}; {len(data.failed)} cells failed;
{dropped} records were dropped; {len(unreliable)} of {len(data.reports)} recordings have idle time that the recorder could not account for{' (' + ', '.join(unreliable) + ')' if unreliable else ''}.

Repeat it, on a machine with a GPU, with

```sh
cargo build --release
scripts/measure/host_device_sync.py record target/release/bubble-report OUT {300}
scripts/measure/host_device_sync.py write OUT OUT/host-device-sync.md
```

"""
    sections = [waits(data, found, plots, link), launches(data, plots, link), matters(data, found, plots, link),
                recovery(data, plan, plots, link), replay, inflated(data, plots, link),
                surprises(data, found, pairs, said, worst_pair), all_pairs]
    save(document, filled(head + "\n".join(sections)))
