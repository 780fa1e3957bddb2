"""Makes docs/measurements/h200-record-overhead.md of the figures that record_overhead.py measured."""

import json, math, random, statistics

SECTIONS = {
    "loop": "launch loop, per launch", "threads": "launch loop of four threads, per launch",
    "graph": "graph of 20 kernels, replayed, per replay", "synced": "graph of 40 kernels, each replay waited for, per replay",
    "step": "PyTorch training step, bound by the host", "bound": "PyTorch training step, bound by the GPU",
    "inference": "PyTorch inference, CUDA graph, per request",
}
CONDITIONS = {
    "off": "off", "bubblescope": "bubblescope", "bubblescope-graph": "bubblescope, graphs as one op",
    "bare": "bare CUPTI", "bare-graph": "bare CUPTI, graphs as one op", "nsys": "nsys",
    "nsys-graph": "nsys, graphs as one op", "torch.profiler": "torch.profiler",
}


# Where a figure has to lie: at most there against bare CUPTI, below the others.
LIMITS = {"bare": (1.05, "at most 1.05 × bare CUPTI"), "nsys": (1.0, "below nsys"), "torch.profiler": (1.0, "below torch.profiler")}
PARTS = {"programs": ("loop", "threads", "graph", "synced"), "torch": ("step", "inference", "bound")}


def values_of(found, part, condition, section):
    """Microseconds of each piece, by the set of processes that it was measured in."""
    return [[value / 1e3 for value in run["figures"][section]] for run in found.get(part, {}).get(condition, [])
            if section in run["figures"]]


def every(sets):
    return [value for values in sets for value in values]


def ratios(ours, theirs):
    """Of pieces in the same round, by the set of processes. None when the one or the other is missing somewhere."""
    if not ours or list(map(len, ours)) != list(map(len, theirs)):
        return None
    return [[a / b for a, b in zip(*pair)] for pair in zip(ours, theirs)]


# Fewer pieces than these say nothing of how they scatter.
FEWEST = 10


def interval(values, of=statistics.median):
    """The median, or what else `of` makes of the values, and between which 95 % of it lie for 2,000 samples that are drawn of
    them with repetition."""
    if len(values) < FEWEST:
        return of(values), 0.0, math.inf
    chance = random.Random(0)
    found = sorted(of(chance.choices(values, k=len(values))) for _ in range(2000))
    return of(values), found[50], found[-51]


def cost(pairs):
    """What recording adds, against what the rival's adds, of pairs: the time with the recorder and the time without any, both
    against that with the rival. The medians first: each difference by itself would be lost in the machine's changes of pace."""
    ours, off = (statistics.median(values) for values in zip(*pairs))
    return (ours - off) / (1 - off) if off < 1 else math.inf


def added(found, part, rival, section):
    """The pairs that `cost` takes, by the set of processes; None when something is missing."""
    ours, off = (ratios(*(values_of(found, part, which, section) for which in (condition, rival))) for condition in ("bubblescope", "off"))
    return [list(zip(*both)) for both in zip(ours, off)] if ours and off else None


def against(found, part, condition, rival, section):
    """The median of the ratios within a round, with its interval."""
    sets = ratios(*(values_of(found, part, which, section) for which in (condition, rival)))
    return interval(every(sets)) if sets else None


def words_of(ratio, digits=3):
    return "{:.{d}f} ({:.{d}f} to {:.{d}f})".format(*ratio, d=digits) if ratio else ""


def number(value):
    return f"{value:.3f}" if value < 10 else f"{value:.2f}" if value < 100 else f"{value:.1f}"


def cost_rows(found, part):
    yield "| work | condition | µs, median (of 80 % of the pieces) | against off | against bare | against nsys |"
    yield "|---|---|---|---|---|---|"
    for section in PARTS[part]:
        for condition, words in CONDITIONS.items():
            values = sorted(every(values_of(found, part, condition, section)))
            if not values:
                continue
            level = "-graph" if condition.endswith("-graph") else ""
            rivals = ["off", "bare" + level, "nsys" + level] if condition.startswith("bubblescope") else ["off"]
            cells = ["" if rival == condition else words_of(against(found, part, condition, rival, section)) for rival in rivals]
            low, high = values[len(values) // 10], values[-1 - len(values) // 10]
            yield (f"| {SECTIONS[section]} | {words} | {number(statistics.median(values))} ({number(low)} to {number(high)}, "
                   f"{len(values)} ×) | " + " | ".join([*cells, "", ""][:3]) + " |")


def verdict(found):
    """Whether the figures that were aimed at are reached, by what recording adds, which is the stricter reading of them."""
    yield "| figure | work | reached | what recording adds, as a ratio | the whole time, as a ratio |"
    yield "|---|---|---|---|---|"
    for part, section, rival in ((part, section, rival) for part, sections in PARTS.items() for section in sections for rival in LIMITS):
        if part == "programs" and rival == "torch.profiler":
            continue
        limit, words = LIMITS[rival]
        sets = added(found, part, rival, section)
        yield f"| {words} | {SECTIONS[section]} | " + (f"{told(sets, limit, cost)} | {words_of(against(found, part, 'bubblescope', rival, section))} |"
                                                       if sets else "not measured | | |")
    sets = ratios(*(values_of(found, "torch", which, "bound") for which in ("bubblescope", "off")))
    if sets:
        said, _ = told(sets, 1.01, statistics.median).split(" | ")
        yield f"| wall of at most 1.01 × off | {SECTIONS['bound']} | {said} | | {words_of(interval(every(sets)))} |"


def told(sets, limit, of):
    """Whether all of it is on one side of the limit beyond what chance does, and each set for itself, and the figures that say so."""
    whole, each = interval(every(sets), of), [of(values) for values in sets]
    below, above = whole[2] <= limit and max(each) <= limit, whole[1] > limit and min(each) > limit
    said = "yes" if below else "no" if above else "not to be told"
    return f"{said} | {words_of(whole)}, by set {', '.join(f'{figure:.3f}' for figure in each)}"


def stays(found):
    runs = found.get("stays", {})
    parts = {"before": "before `cudaProfilerStart`", "between": "while recorded", "after": "after `cudaProfilerStop`"}
    yield "| launch loop | off, ns per launch | bubblescope `--capture-range=cudaProfilerApi` | ratio |"
    yield "|---|---|---|---|"
    for part, words in parts.items():
        off = [run["figures"][part] for run in runs.get("range, off", []) if part in run["figures"]]
        ours = [run["figures"][part] for run in runs.get("range, bubblescope", []) if part in run["figures"]]
        if off and ours:
            yield (f"| {words} | {statistics.median(off):.0f} ({min(off):.0f} to {max(off):.0f}) | {statistics.median(ours):.0f} "
                   f"({min(ours):.0f} to {max(ours):.0f}) | {statistics.median(ours) / statistics.median(off):.3f} |")
    yield ""
    lines = {name: [line for run in runs.get(name, []) for line in run.get("lines", {}).get("time", [])]
             for name in ("time, off", "time, bubblescope")}
    if lines["time, bubblescope"]:
        yield "With `--duration 2s`, by the time since CUDA began in the process:"
        yield ""
        yield "| from | off, ns per launch | bubblescope | ratio |"
        yield "|---|---|---|---|"
        for start, end in ((0.3, 1.8), (2.6, 4.0), (4.0, 6.3)):
            middle = {}
            for name, all_lines in lines.items():
                inside = [line["ns"] for line in all_lines if start <= line["at"] < end]
                middle[name] = statistics.median(inside) if inside else None
            off, ours = middle["time, off"], middle["time, bubblescope"]
            if off and ours:
                yield f"| {start} to {end} s | {off:.0f} | {ours:.0f} | {ours / off:.3f} |"


def settings(runs_of_settings):
    """Tables of settings, one for each run, and what pieces that are too short leave out."""
    yield "One setting changed at a time, all of a table in one run. The rows of the bare client show where CUPTI's floor is."
    for found in runs_of_settings:
        yield ""
        yield from table(found)
    if any(found["pieces"] < LONG for found in runs_of_settings):
        yield ""
        yield ("Short pieces leave out what a recorder does with a buffer once the piece is over: it falls into another condition's piece, "
               "in favour of large buffers, of which a piece fills one at most. Where a table of longer pieces has the same row, that one holds.")


# From how many of the shortest pieces on a piece fills many buffers.
LONG = 4


def table(found):
    """A table of settings, and which of them make a difference that every set of processes bears out."""
    runs = found["settings"]
    sections = [section for part in PARTS.values() for section in part if all(section in run["figures"] for sets in runs.values() for run in sets)]
    yield "| setting | " + " | ".join(f"{SECTIONS[section]}, µs | ×" for section in sections) + " |"
    yield "|---|" + "---|---|" * len(sections)
    agreed = []
    for name in runs:
        default = "bare" if name.startswith("bare") else "bubblescope"
        cells = []
        for section in sections:
            own, other = (values_of(found, "settings", which, section) for which in (name, default))
            cells.append(number(statistics.median(every(own))))
            sets = ratios(own, other)
            if name in ("off", "bare", "bubblescope") or not sets:
                cells.append("")
                continue
            middle = interval(every(sets))
            cells.append(words_of(middle, 2))
            each = [interval(values) for values in sets]
            if all(low > 1 for _, low, _ in each) or all(high < 1 for _, _, high in each):
                agreed.append(f"{name}, {SECTIONS[section].removesuffix(', per launch').removesuffix(', per replay')}: {middle[0]:.2f}")
        yield f"| {name} | " + " | ".join(cells) + " |"
    sets = values_of(found, "settings", "bubblescope", sections[0])
    # Some are measured more than once in a round.
    rounds = min(len(every(values_of(found, "settings", "bubblescope", section))) for section in sections)
    yield ""
    yield (f"{rounds} rounds in {len(sets)} set{'s' if len(sets) > 1 else ''} of processes, in pieces {pieces(found)}, "
           f"{where(found)}; × is the median of the ratios to the default within a round (95 % of resampled rounds). " + (
               "Beyond chance, and on the same side in every set: " + "; ".join(agreed) + ". Nothing else is."
               if agreed else "No setting is beyond chance on the same side of its default in every set.") + " " + found.get("remark", "")).rstrip()


def pieces(found):
    """How long the pieces of a run are."""
    return f"of some {7 * found['pieces']} to {65 * found['pieces']} ms"


# Of the launches behind a change of buffers, those that the table names.
BEHIND = (1, 2, 3, 4, 5, 8, 16, 32)


def changes(found):
    """What it costs a program that an activity buffer is full."""
    yield ("When an activity buffer is full, CUPTI takes another, and a thread of CUPTI's works on the full one. Until that is done, the "
           "program's launches take longer. Recordings tell it themselves; these were made one after another, so only figures within a row "
           "compare:")
    yield ""
    yield ("| work | buffers of | changes | launches to a buffer | one usually takes, µs, and inside the launch | "
           + " | ".join(f"{place}." for place in BEHIND) + " behind a change | more for a change, µs | for a launch |")
    yield "|---|---|---|---|---|" + "---|" * len(BEHIND) + "---|---|"
    for name, row in found["changes"].items():
        section, size = name.split(", ")
        yield (f"| {SECTIONS[section]} | {size} | {row['changes']} | {row['launches']} | {number(row['usual_ns'] / 1e3)}, {number(row['usual_inside_ns'] / 1e3)} | "
               + " | ".join(number(row["behind_ns"][place - 1] / 1e3) for place in BEHIND)
               + f" | {number(more(row) / 1e3)} | {number(more(row) / row['launches'] / 1e3)} |")
    yield ""
    first, late = found["changes"]["synced, 512 KiB"], found["writer_late"]
    yield (f"Where a launch is most of the work, it takes {number(first['usual_inside_ns'] / 1e3)} µs usually and {number(max(first['inside_ns']) / 1e3)} "
           "meanwhile. Each record that is worked on costs the program time, so a large buffer costs as much for a launch as a small one or more; where launches "
           "are few, what a change costs by itself is the larger part, and a large buffer is cheaper. It is not `record`'s own thread: with one that "
           f"looked for full buffers only every {late['every_ms']} ms, for the {late['name'].replace(', ', ' with buffers of ')}, the first requests behind a change took "
           f"{', '.join(number(value / 1e3) for value in late['behind_ns'][:4])} µs and the usual one {number(late['usual_ns'] / 1e3)} all the same. "
           "So this is a floor for a client of CUPTI's that has such buffers; it can only choose their size.")


def more(row):
    """How much longer all launches behind one change take than they usually do, ns."""
    return sum(row["behind_ns"]) - len(row["behind_ns"]) * row["usual_ns"]


def clock(found):
    """What another clock changes within one process, beside what the system's does twice."""
    yield ("A client may give CUPTI a clock (`cuptiActivityRegisterTimestampCallback`), as Nsight Systems does. Under the bare client "
           "one process changes between two of them all the time, so that the pace of the machine is the same for both:")
    yield ""
    yield "| work | clocks | first, µs | second, µs | second against first, median (least to greatest) |"
    yield "|---|---|---|---|---|"
    for name, words in (("system", "CUPTI's own, twice"), ("tsc", "`clock_gettime` and the processor's counter")):
        for section in ("loop", "synced"):
            first, second = ([run["figures"][f"{section} {state}"] / 1e3 for run in found["clock"][name]] for state in (0, 1))
            changes = [b / a for a, b in zip(first, second)]
            yield (f"| {SECTIONS[section]} | {words} | {number(statistics.median(first))} | {number(statistics.median(second))} | "
                   f"{statistics.median(changes):.4f} ({min(changes):.3f} to {max(changes):.3f}, {len(changes)} ×) |")
    runs = found["clock"]["tsc"]
    untimed, kernels = (sum(of(run["bare"]) for run in runs) for of in (lambda bare: bare["untimed"], lambda bare: bare["kinds"]["10"]))
    readings = [sum(run["bare"]["readings"][state] for run in runs) for state in (0, 1)]
    yield ""
    yield (f"The first was read {readings[0]:,} times and the second {readings[1]:,}. Of {kernels:,} kernels {untimed} had times that are zero, "
           "in the wrong order, or more than an hour off. `record` leaves CUPTI its own clock: by NVIDIA's notes for 13.1, the versions "
           "from 12.6 Update 2 on gave wrong times of kernels under another one.")


def reuse(seen):
    """What it costs that CUPTI uses a buffer on the device again."""
    times = [value / 1e3 for value in seen["long_ns"]]
    first, last = seen["crossings"][0], seen["crossings"][-1]
    small, run = seen["small"], seen["long_run"]
    size = seen["config"]["device_buffer_bytes"]
    yield (f"Each op takes 32 bytes of a buffer on the device, so one of {size // 1024} KiB has room for {seen['slots']:,}. In "
           f"`{seen['command']}` ({seen['kernels']:,} kernels of {seen['launches']:,} launch calls, half of them {seen['median_ns'] / 1e3:.1f} µs "
           f"or less), all five threads' launches took {min(times):.0f} to {max(times):.0f} µs at once around each of the {len(seen['crossings'])} "
           f"multiples of {seen['slots']:,} from the {first}th to the {last}th, {len(times)} calls; around those before, where the buffers are "
           f"new, none took more than {seen['before_ns'] / 1e3:.0f} µs, and elsewhere one took {seen['elsewhere_ns'][1] / 1e3:.0f} µs and no other more than "
           f"{seen['elsewhere_ns'][0] / 1e3:.0f} µs. What CUPTI does with a used buffer in the launch that needs it, no record says. "
           "`bubble-report` counts, and tells such launches as the profiler's (`profiler-device-buffer`).")
    yield ""
    yield (f"In {run['seconds']} s at that rate, {run['kernels']:,} kernels, all had their times ({run['without_time']} without), and the memory "
           f"in use on the GPU was {run['gpu_mib']} MiB from the first second to the last; so buffers are used again: {run['again']} times. "
           f"{run['bubbles_200_to_500_us']} bubbles lasted 200 to 500 µs, {run['bubbles_beyond']} longer and {run['bubbles_50_to_200_us']} between 50 and 200. With "
           f"buffers of {small['device_buffer_bytes'] // 1024} KiB for {small['seconds']} s ({small['kernels']:,} kernels, {small['without_time']} "
           f"without times) no bubble was longer than {small['longest_bubble_ns'] / 1e3:.0f} µs, but there are {size // small['device_buffer_bytes']} "
           "times as many. (Counted by hand in the trace files of these recordings.)")


def device(found):
    """Buffers on the device by their size."""
    yield "| buffers of, KiB (times measured) | launch that takes a used one, µs | halfway between, µs | per launch, µs | CUDA begins within, ms | kernels without times |"
    yield "|---|---|---|---|---|---|"
    for name, runs in found["device"].items():
        size, _, where_else = name.partition(", ")
        middle = lambda section, unit: number(statistics.median(run["figures"][section] / unit for run in runs))
        yield (f"| {int(size) // 1024}{', page-locked memory of the host' if where_else else ''} ({len(runs)} ×) | {middle('reuse', 1e3)} | {middle('between', 1e3)} | {middle('launch', 1e3)} | {middle('begin', 1e6)} | "
               f"{sum(run['bare']['untimed'] for run in runs)} of {sum(run['bare']['kinds']['10'] for run in runs):,} |")
    waits = {int(size): statistics.median(run["figures"]["reuse"] for run in runs) / (int(size) // 32)
             for size, runs in found["device"].items() if size.isdigit()}
    large, small = max(waits), min(waits)
    yield ""
    yield (f"Smaller buffers make each wait shorter and all of them together longer: {waits[large]:.1f} ns for each op with {large // 1024} KiB, "
           f"{waits[small]:.1f} with {small // 1024}. `record` has large ones: they cost least in all, and their waits are told apart. The table's launches were "
           "made by one thread of the bare client; a smaller buffer needs fewer of them to be used again, so the time per launch stands for shorter runs.")


def where(found):
    said = found["machine"]
    kept = found.get("cores", said["cpus"])
    cores = f", of which the programs had one of each core, {kept}" if kept < said["cpus"] else ""
    return f"on a machine with {len(said['gpus'])} GPU{'s' if len(said['gpus']) > 1 else ''} and {said['cpus']} processors{cores}"


def memory(found):
    recorded, alone = found["recorded"], found["alone"]

    def at(second, part=recorded):
        near = [sample for sample in part["samples"] if sample["s"] >= second]
        return near[0] if near else part["samples"][-1]

    length = recorded["samples"][-1]["s"]
    counted, calls = recorded.get("counted") or {}, recorded.get("calls") or 0
    kernels = counted.get("kernels", 0)
    base = statistics.median(sample["rss_kb"] for sample in alone["samples"][len(alone["samples"]) // 3:])
    yield (f"Four threads launch as fast as they can while a fifth replays a graph of 20 kernels, for {length:.0f} s, "
           f"{where(found)}. {kernels:,} kernels ran, of {calls:,} launch calls: {kernels / length:,.0f} kernels a second. "
           f"The spool grew to {recorded['spool_bytes'] / 1e9:.1f} GB, {recorded['spool_bytes'] / max(calls, 1):.0f} bytes for each "
           f"launch call and {recorded['spool_bytes'] / max(kernels, 1):.0f} for each kernel; the records in it are "
           f"{recorded['records_bytes'] / 1e9:.1f} GB.")
    yield ""
    drops = recorded.get("drops") or {}
    lost = {key: value for key, value in drops.items() if value}
    yield "Nothing was dropped, says the spool." if recorded.get("drops") is not None and not lost else (
        f"The spool states what was dropped: {json.dumps(lost)}." if lost else "The spool states no drops.")
    yield ""
    bare = found.get("bare", {})
    yield "| after | resident, MiB | more than the program alone, MiB | buffers, MiB | resident under the bare client, MiB |"
    yield "|---|---|---|---|---|"
    for second in (1, 10, 30, 60, 120, 180, 200, length):
        if second <= length:
            sample = at(second)
            others = [other["rss_kb"] for other in bare.get("samples", []) if other["s"] >= second]
            cells = [sample["rss_kb"], sample["rss_kb"] - base, sample.get("pool_kb"), others[0] if others else None]
            yield f"| {second:.0f} s | " + " | ".join(f"{kb / 1024:.1f}" if kb is not None else "" for kb in cells) + " |"
    yield ""
    if recorded.get("slope_kib_per_min") is not None:
        grown = [f"{words}: {part['slope_kib_per_min'] / 1024:+.2f} MiB a minute, {fitted(part)}" for words, part in (
            ("recorded", recorded), ("under the bare client", bare), ("the program alone", alone))
            if part.get("slope_kib_per_min") is not None]
        yield f"How it grows, by least squares: {'; '.join(grown)}. {difference(found)}".rstrip()
    rate = recorded.get("launches") or []
    if len(rate) > 60:
        first, last = (rate[45] - rate[15]) / 30, (rate[-1] - rate[-31]) / 30
        yield ""
        yield f"The program launched {first:,.0f} times a second about 30 s after its start and {last:,.0f} times in its last 30 s."
    for words, part in (("recorded", recorded), ("under the bare client", bare)):
        if part.get("grown"):
            yield ""
            yield (f"What became larger or smaller from some {part['fit_after_s']:.0f} s to the last look, {words}: " + "; ".join(
                f"{name}: {kb / 1024:+.2f} MiB" + (f" ({pieces:+d} mappings)" if pieces else "") for name, pieces, kb in part["grown"][:6])
                + ".")
    last, first = recorded["samples"][-1], at(30)
    words, key, slope = own_memory(recorded)
    if slope is not None:
        yield ""
        yield (f"{words[0].upper()}{words[1:]} took {first[key] / 1024:.1f} MiB at 30 s and {last[key] / 1024:.1f} MiB at the end "
               f"({slope / 1024:+.2f} MiB a minute). What is above that at any moment is the program's and CUPTI's.")
    if "ran_s" in last:
        yield ""
        seconds = last["s"] - first["s"]
        yield (f"In that time the thread that writes the spool ran {100 * (last['ran_s'] - first['ran_s']) / seconds:.0f} % of the "
               f"time and waited {100 * (last['waited_s'] - first['waited_s']) / seconds:.1f} % for a processor.")
    if found.get("remark"):
        yield found["remark"]


def fitted(part):
    """Over which time a growth was taken."""
    last = part["samples"][-1]["s"]
    return f"from {part.get('fit_after_s', min(30, last / 4)):.0f} s to {last:.0f} s"


def own_memory(recorded):
    """What the recorder says that it takes in a recorded process: in words, the key of a sample, and KiB a minute."""
    slope = recorded.get("own_slope_kib_per_min")
    if slope is not None:
        return "all that the recorder has allocated", "own_kb", slope
    return "the recorder's activity buffers", "pool_kb", recorded.get("pool_slope_kib_per_min")


def beyond_bare(found):
    """KiB a minute by which a recorded process grows more than one with the bare client."""
    ours, theirs = (found.get(part, {}).get("slope_kib_per_min") for part in ("recorded", "bare"))
    return None if ours is None or theirs is None else ours - theirs


def difference(found):
    """What of the growth is the recorder's own."""
    own = beyond_bare(found)
    if own is None:
        return ""
    lengths = [found[part]["samples"][-1]["s"] for part in ("recorded", "bare")]
    so_far = "" if lengths[1] >= 0.9 * lengths[0] else "; the bare client ran for a shorter time, so this is no more than a hint"
    return f"The difference of the first two, {own / 1024:+.2f} MiB a minute, is the recorder's own{so_far}."


def grows(found):
    """The rows of the verdict for memory."""
    length = found["recorded"]["samples"][-1]["s"]
    subject, _, own = own_memory(found["recorded"])
    for words, slope in ((f"growth after 30 s of less than 1 MiB a minute: {subject}", own),
                         ("growth after 30 s of less than 1 MiB a minute: the recorded process, with CUPTI in it", found["recorded"].get("slope_kib_per_min")),
                         ("and of less than 1 MiB a minute more than under bare CUPTI", beyond_bare(found))):
        if slope is not None:
            yield f"| {words} | highest rate for {length:.0f} s | {'yes' if slope < 1024 else 'no'} | {slope / 1024:.2f} MiB | |"


def missing(stayed, memory_now):
    """What was aimed at and not measured."""
    aims = 5
    few = {"What stays after a range": {name: runs for name, runs in stayed.get("stays", {}).items() if name.startswith("range")},
           "What stays after `--duration`": {name: runs for name, runs in stayed.get("stays", {}).items() if name.startswith("time")}}
    for words, runs in few.items():
        least = min((len(entries) for entries in runs.values()), default=0)
        if least < aims:
            yield f"- {words}: {least} of the {aims} repetitions aimed at."
    length = memory_now["recorded"]["samples"][-1]["s"] if memory_now else 0
    if length < 230:
        yield f"- Memory of the present version: {length:.0f} s of the four minutes aimed at."


def remark(figures, now):
    """What has to be said beside figures of a run of its own, as a paragraph: when and how they were measured, and how its
    recorder was set otherwise than the one of the first table."""
    words = [figures["remark"]] if figures.get("remark") else []
    other = [f"{key} {value}, not {now[key]}" for key, value in figures.get("config", {}).items() if now.get(key, value) != value]
    words.append(f"Processes one after another, on {figures['machine']['date']}" + (f", with other settings than the figures above: {'; '.join(other)}." if other else "."))
    return [" ".join(words), ""]


def write(folder, document):
    def figures(name):
        path = folder / name
        return json.loads(path.read_text()) if path.exists() else None

    found = figures("overhead.json")
    # What was measured in a run of its own.
    stayed = figures("stays.json") or found
    chosen = figures("settings.json") or found
    chosen = [run for run in (chosen if isinstance(chosen, list) else [chosen]) if "settings" in run]
    memory_now = figures("memory.json")
    full = figures("changes.json")
    said = found["machine"]
    needs = "; ".join(f"{SECTIONS[section]}: {count} processors" for section, count in found["needs"].items())
    gpu = said["gpus"][0].split(", ") if said["gpus"] else ["GPU", "?"]
    packages = said["packages"]
    text = [
        "# What `bubble-report record` costs, on an H200", "",
        f"Measured on {said['date']} on one {gpu[0]} (driver {gpu[1]}, CUDA {said['toolkit']}), {said['cpus']} processors "
        f"({said['cpu']}), Linux {said['kernel']}, CUPTI of `nvidia-cuda-cupti` {packages.get('nvidia-cuda-cupti', '?')}, "
        f"PyTorch {packages.get('torch', '?')}, Nsight Systems {said['nsys'].split('-')[0]}. The host is shared: the same program takes "
        "up to 1.5 times as long on one processor as on another, and from one second to the next, recorded or not. So the "
        f"conditions are processes that are there at once and take turns in pieces {pieces(found)}, in another order each time, all on one "
        f"processor and the next time on another ({needs}).", "",
        "A ratio is the median of those of pieces that took turns, with the values between which 95 % of it lie when the turns are resampled; by set: "
        "for each of the sets of processes. What recording adds is the time beyond that of the program alone. The figures are about that, and since it is "
        "the smaller part, its ratio is known less precisely than that of the whole time. A figure is reached or not where its ratio is on one side of the limit "
        "beyond chance, and in each set." + (f" {found['remark']}" if found.get("remark") else ""), "",
        "- **off**: the program alone.",
        "- **bubblescope**: what `bubble-report record` sets for a program, with its defaults.",
        "- **bare CUPTI**: `scripts/measure/bare_inject.c`, the smallest client with the same kinds, the same buffers and the "
        "same calls left out, which asks for full buffers as often. It counts the records and drops them.",
        "- **nsys**: `nsys profile -t cuda -s none --cpuctxsw=none`, `--cuda-graph-trace=node` or `graph`.",
        "- **torch.profiler**: `ProfilerActivity.CUDA`, from before the first piece to behind the last.", "",
        f"Kinds {found['kinds']}; left out at the source: {', '.join(sorted(set(found['left_out'])))}.", "",
        "## Are the figures reached?", "", *verdict(found),
        *(grows(memory_now) if memory_now else ()), "",
    ]
    lacking = list(missing(stayed, memory_now))
    if lacking:
        text += ["Not measured as far as it was meant to be:", "", *lacking, ""]
    text += [
        "## C++ programs", "", *cost_rows(found, "programs"), "",
        "Nsight Systems records through CUPTI as well, with a libcupti of its own. With 2,800 or 5,600 replays of the graph of 20 "
        "kernels underway at once, the program ended under it, five times of five, with a fault in libcuda or CUDA error 719 and the "
        "GPU's errors Xid 13 and 32, and with no other condition; so all of them wait after every 500.", "",
        "## PyTorch", "", *cost_rows(found, "torch"), "",
        "## What stays when recording has ended", "",
        "After the end CUPTI stays loaded, and what it keeps in the path of a launch costs on.", "",
        *remark(stayed, found["config"]), *stays(stayed), "",
        "## The choice of settings", "", *(settings(chosen) if chosen else ["Not measured."]), "",
        *(["## Full buffers", "", *changes(full), ""] if full else ()),
    ]
    ticks, seen, sizes = figures("clock.json"), figures("reuse.json"), figures("device.json")
    if ticks:
        text += ["## Another clock", "", *clock(ticks), ""]
    if seen or sizes:
        text += ["## Buffers on the device", "", *([*reuse(seen), ""] if seen else ()), *([*device(sizes), ""] if sizes else ())]
    if memory_now:
        text += ["## Memory and file at the highest rate", "", f"Measured on {memory_now['machine']['date']}.", "", *memory(memory_now), ""]
    text += ["Repeat it with `scripts/measure/record_overhead.py measure overhead.json` and `record_overhead.py memory "
             "memory.json` on a machine with a GPU (`--only stays`, `--only clock` and so on for a part in a run of its own); this page is made of those files by its `write`.", ""]
    document.write_text("\n".join(text))
