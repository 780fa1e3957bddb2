"""What it costs a program that an activity buffer of CUPTI's is full, as its recording tells it: CUPTI says when a thread takes
another buffer and how long it works on a full one, and the launches behind that moment take longer than the others."""

import bisect, collections, csv, statistics, subprocess, tempfile

import machine

# How many launches behind a change are told one by one.
TOLD = 32
# What takes longer has another reason.
LONGEST = 1_000_000


def told_by(recording):
    """What `behind_changes` finds in a recording."""
    with tempfile.TemporaryDirectory() as scratch:
        table = f"{scratch}/recording.csv"
        subprocess.run([machine.bubble_report(), "convert", "-o", table, str(recording)], check=True, capture_output=True)
        with open(table, newline="") as lines:
            return behind_changes([row for row in csv.DictReader(lines) if row["kind"] in ("call", "overhead")])


def behind_changes(rows):
    """Of the calls and the overhead of a program that launches graphs one after another: how long it is from one to the next, ns,
    first behind a change of buffers and then usually, and how long that is inside the launch. None when there are too few changes."""
    calls = [(row["tid"], int(row["start_ns"]), int(row["dur_ns"]), row["name"]) for row in rows if row["kind"] == "call"]
    launching = collections.Counter(tid for tid, _, _, name in calls if name.startswith("cudaGraphLaunch"))
    if not launching:
        return None
    tid = launching.most_common(1)[0][0]
    launches = sorted((start, length, name.startswith("cudaGraphLaunch")) for by, start, length, name in calls if by == tid and "Launch" in name)
    starts = [start for start, _, _ in launches]
    work = [(row["tid"], int(row["start_ns"]), int(row["dur_ns"])) for row in rows if row["kind"] == "overhead" and row["category"] == "profiler-buffer"]
    taken = sorted(start for by, start, _ in work if by == tid)
    behind, inside, changes, graphs = collections.defaultdict(list), collections.defaultdict(list), [], []
    for first, last in zip(taken, taken[1:]):
        begin, end = bisect.bisect(starts, first) - 1, bisect.bisect(starts, last) - 1
        # Not while the program warms up, nor across other work.
        if begin < 50 or end >= len(starts) or not all(launch[2] for launch in launches[begin:end + 1]):
            continue
        changes.append(first)
        graphs.append(end - begin)
        for at in range(begin, end):
            if starts[at + 1] - starts[at] < LONGEST:
                behind[at - begin].append(starts[at + 1] - starts[at])
                inside[at - begin].append(launches[at][1])
    if len(changes) < 5:
        return None
    whole = round(statistics.median(graphs))
    usual, usual_inside = (statistics.median(value for at in range(TOLD, whole) for value in of[at]) for of in (behind, inside))
    by_others = [length for by, start, length in work if by != tid and changes[0] < start < changes[-1]]
    return {"changes": len(changes), "launches": whole, "usual_ns": round(usual), "usual_inside_ns": round(usual_inside),
            "behind_ns": [round(statistics.mean(behind[at])) for at in range(TOLD)],
            "inside_ns": [round(statistics.mean(inside[at])) for at in range(TOLD)],
            "said_by_cupti_ns": round(statistics.median(by_others)) if by_others else None}
