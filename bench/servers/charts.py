"""Charts of figures with intervals, as SVG that can be read on light and on dark screens."""

import html
import math

ROW, TOP, BOTTOM, LEFT, GAP, PANEL = 22, 70, 34, 130, 24, 350
MARGIN, RADIUS, OFFSET = 12, 3.0, 3.5
# The width of one, in small text.
CHARACTER = 6.2
STYLE = """\
text{font:13px system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}
.title{font-weight:600}.small{font-size:11px;fill:#59636e}
.page{fill:#fff}.grid{stroke:#d1d9e0}.row{fill:#f6f8fa}
.one{stroke:#0969da;fill:#0969da}.two{stroke:#bc4c00;fill:#bc4c00}
.hollow{fill:#fff}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.small{fill:#9198a1}
.page{fill:#0d1117}.grid{stroke:#3d444d}.row{fill:#151b23}
.one{stroke:#4493f8;fill:#4493f8}.two{stroke:#f0883e;fill:#f0883e}
.hollow{fill:#0d1117}
}
"""
COLOURS = ("one", "two")


class Panel:
    """A column of a chart: a logarithmic axis, and for each row up to two spreads on it."""

    def __init__(self, title, unit, series):
        """`series` are names with a spread for each row, or None where there is none."""
        self.title, self.unit, self.series = title, unit, series
        ends = [
            end for _, spreads in series for spread in spreads.values() if spread
            for end in (spread.low, spread.middle, spread.high) if 0 < end < math.inf
        ]
        self.low, self.high = (math.log10(min(ends)), math.log10(max(ends))) if ends else (0, 1)
        room = 0.04 * max(self.high - self.low, 0.3)
        self.low, self.high = self.low - room, self.high + room

    def at(self, value):
        """Where a value lies, in pixels from the left end."""
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return PANEL * min(max(share, 0), 1)

    def ticks(self):
        decades = range(math.floor(self.low) - 1, math.ceil(self.high) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            found = [step * 10.0**decade for decade in decades for step in steps]
            found = [each for each in found if self.low <= math.log10(each) <= self.high]
            if self.have_room(found):
                break
        return found

    def have_room(self, ticks):
        """Whether the labels of ticks stand apart."""
        halves = [CHARACTER * (len(label(tick)) + 1) / 2 for tick in ticks]
        gaps = zip(ticks, ticks[1:], halves, halves[1:])
        return all(self.at(two) - self.at(one) >= left + right for one, two, left, right in gaps)


def label(tick):
    return f"{tick:,.0f}" if tick >= 1 else f"{tick:g}"


def chart(rows, panels):
    """A row for each name, and the panels side by side."""
    width = LEFT + len(panels) * (PANEL + GAP) + MARGIN
    height = TOP + ROW * len(rows) + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}" rx="8"/>',
    ]
    for number, name in enumerate(rows):
        top = TOP + ROW * number
        if number % 2 == 0:
            lines.append(
                f'<rect class="row" x="{MARGIN / 2}" y="{top}" width="{width - MARGIN}" '
                f'height="{ROW}"/>'
            )
        lines.append(text(MARGIN, top + 15, name))
    for number, panel in enumerate(panels):
        lines += drawn(panel, rows, LEFT + number * (PANEL + GAP))
    return "\n".join([*lines, "</svg>"]) + "\n"


def text(x, y, words, classes="", anchor="start"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">'
        f"{html.escape(words)}</text>"
    )


def drawn(panel, rows, left):
    bottom = TOP + ROW * len(rows)
    lines = [text(left, 22, f"{panel.title}, {panel.unit}", "title")]
    legend = left
    for colour, (name, _) in zip(COLOURS, panel.series):
        lines.append(f'<circle class="{colour}" cx="{legend + 4}" cy="42" r="{RADIUS}"/>')
        lines.append(text(legend + 13, 46, name, "small"))
        legend += 30 + CHARACTER * len(name)
    for tick in panel.ticks():
        x = left + panel.at(tick)
        lines.append(
            f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        )
        lines.append(text(x, bottom + 16, label(tick), "small", "middle"))
    for number, (colour, (_, spreads)) in enumerate(zip(COLOURS, panel.series)):
        offset = 0 if len(panel.series) == 1 else OFFSET * (2 * number - 1)
        for row, name in enumerate(rows):
            if spreads.get(name):
                y = TOP + ROW * (row + 0.5) + offset
                lines += mark(panel, spreads[name], left, y, colour)
    return lines


def mark(panel, spread, left, y, colour):
    """A dot at the median and a line over the interval. Where the interval has no upper end, the
    dot is hollow and the line goes to the edge."""
    is_open = spread.high == math.inf
    low = left + panel.at(spread.low)
    high = left + (PANEL if is_open else panel.at(spread.high))
    hollow = " hollow" if is_open else ""
    return [
        f'<line class="{colour}" x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}" '
        'stroke-width="2"/>',
        f'<circle class="{colour}{hollow}" cx="{left + panel.at(spread.middle):.1f}" cy="{y:.1f}" '
        f'r="{RADIUS}" stroke-width="1.5"/>',
    ]
