"""Plots as SVG text: axes, points and lines, a legend. Every number is written with few digits, so that the same data
give the same bytes."""

import math
from html import escape

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f", "#8c564b"]
WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 56


class Axis:
    """From values to places, over `low` to `high`."""

    def __init__(self, name, low, high, log=False, ticks=None):
        self.name, self.low, self.high, self.log = name, low, high, log
        self.ticks = ticks or (decades(low, high) if log else steps(low, high))

    def part(self, value):
        """Where the value lies between the ends, 0 to 1."""
        if self.log:
            return (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return (value - self.low) / (self.high - self.low)


def decades(low, high):
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0 ** power for power in range(first, last + 1)]


def steps(low, high):
    rough = (high - low) / 6
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough)
    return [step * number for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def label(value):
    return f"{value:g}" if value < 10_000 else f"{value:.0f}"


def plot(title, across, up, series, lines=(), guides=(), left=LEFT, height=HEIGHT):
    """SVG text. `series` maps a name to (x, y) or (x, y, text) points; those named in `lines` are joined. `guides` are
    straight lines ((x, y), (x, y), name)."""
    wide, high = WIDTH - left - RIGHT, height - TOP - BOTTOM

    def place(x, y):
        return left + wide * across.part(x), TOP + high * (1 - up.part(y))

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{left}" y="22" font-size="15">{escape(title)}</text>',
    ]
    for tick in across.ticks:
        value, text = tick if isinstance(tick, tuple) else (tick, label(tick))
        x, y = place(value, up.low)
        out.append(f'<path d="M{x:.1f} {TOP}V{y:.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{x:.1f}" y="{y + 17:.1f}" text-anchor="middle">{escape(text)}</text>')
    for tick in up.ticks:
        value, text = tick if isinstance(tick, tuple) else (tick, label(tick))
        x, y = place(across.low, value)
        out.append(f'<path d="M{x:.1f} {y:.1f}H{left + wide}" stroke="#dddddd"/>')
        out.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>')
    out.append(f'<text x="{left + wide / 2:.1f}" y="{height - 14}" text-anchor="middle">{escape(across.name)}</text>')
    middle = TOP + high / 2
    out.append(f'<text x="16" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 16 {middle:.1f})">{escape(up.name)}</text>')
    for start, end, name in guides:
        (x1, y1), (x2, y2) = place(*start), place(*end)
        out.append(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#777777" stroke-dasharray="5 4"/>')
        out.append(f'<text x="{x2 + 5:.1f}" y="{y2 + 4:.1f}" fill="#555555">{escape(name)}</text>')
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        if name in lines and len(points) > 1:
            path = "L".join("{:.1f} {:.1f}".format(*place(*point[:2])) for point in points)
            out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for point in points:
            x, y = place(*point[:2])
            told = f"<title>{escape(point[2])}</title>" if len(point) > 2 else ""
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity="0.75">{told}</circle>')
        y = TOP + high - 8 - 18 * (len(series) - 1 - number)
        out.append(f'<circle cx="{left + wide + 16}" cy="{y - 4}" r="4" fill="{colour}"/>')
        out.append(f'<text x="{left + wide + 26}" y="{y}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>", ""])
