"""Plots of a gateway's numbers over time, as SVG that follows the page's colors. Pure. [spec webapi 9.3]"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Literal

from grid.gateway.history.sample import Sample
from grid.gateway.pages.markup import Markup, join, size_text, tag
from grid.values import frozen

Span = Literal["hour", "day"]

_SPANS: dict[Span, tuple[float, int]] = {"hour": (3600.0, 60), "day": (86400.0, 96)}
"""Seconds that a plot covers, and the points in it."""

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 340, 120, 62, 8, 20


@frozen(kw_only=True)
class _Plot:
    """value: of a sample. text: formats a value of the plot. is_rate: plots how fast the value grows, per second."""

    title: str
    value: Callable[[Sample], float]
    text: Callable[[float], str]
    is_rate: bool = True
    least: float = 0.0


def _size_rate(value: float) -> str:
    return f"{size_text(round(value))}/s"


def _shown(value: float) -> str:
    """A number in three digits, and a large one in all of them: never with an exponent."""
    return f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


_PLOTS = (
    _Plot(title="Stored", value=lambda sample: sample.stored, text=_size_rate, least=1000),
    _Plot(title="Read", value=lambda sample: sample.read, text=_size_rate, least=1000),
    _Plot(
        title="Files and changes",
        value=lambda sample: sample.operations * 60,
        text=lambda value: f"{_shown(value)}/min",
        least=1,
    ),
    _Plot(title="CPU", value=lambda sample: sample.processor_s, text=lambda value: f"{value:.0%}", least=0.1),
    _Plot(
        title="Connected servers",
        value=lambda sample: sample.connected,
        text=_shown,
        is_rate=False,
        least=1,
    ),
)


def parse_span(text: str | None) -> Span:
    """The time that plots cover; an hour by default."""
    return "day" if text == "day" else "hour"


def draw_plots(samples: Sequence[Sample], span: Span) -> Markup:
    """Draw all plots. samples: the oldest first, the last one of now."""
    figures = [tag("figure", _draw(plot, samples, span), class_="card plot") for plot in _PLOTS]
    choices = [
        tag("a", label, href=f"/statistics?span={key}", aria_current="true" if key == span else None)
        for key, label in (("hour", "Last hour"), ("day", "Last day"))
    ]
    return join(tag("nav", choices, class_="spans", aria_label="Time shown"), tag("div", figures, class_="plots"))


def _draw(plot: _Plot, samples: Sequence[Sample], span: Span) -> Markup:
    seconds, count = _SPANS[span]
    points = trace(samples, plot.value, seconds, count, is_rate=plot.is_rate)
    known = [point for point in points if point is not None]
    top = _round_up(max([plot.least, *known]))
    words = f"peak {plot.text(max(known))}, now {plot.text(known[-1])}" if known else "no values yet"
    ago = "1 h" if span == "hour" else "24 h"
    svg = tag(
        "svg",
        [_mark(plot.text(top * part / 2), 1 - part / 2) for part in range(3)],
        _lines(points, top),
        _label(_LEFT, f"{ago} ago", "start"),
        _label(_WIDTH - 2, "now", "end"),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=f"{plot.title} in the last {span}: {words}",
    )
    return join(tag("figcaption", tag("strong", plot.title), " ", tag("small", words)), svg)


def trace(
    samples: Sequence[Sample], value: Callable[[Sample], float], seconds: float, count: int, *, is_rate: bool
) -> list[float | None]:
    """The points of a plot that ends with the last sample; None where nothing is known.

    is_rate: a point is the mean growth per second since the point before; otherwise the value then.
    """
    now, step = samples[-1].at, seconds / count
    times = [sample.at for sample in samples]
    points: list[float | None] = []
    for index in range(count):
        # Without these bounds, rounding could put the last sample outside.
        end = now if index == count - 1 else now - (count - 1 - index) * step
        last = bisect_right(times, end) - 1
        first = max(0, bisect_right(times, end - step) - 1)
        if last < 0 or (is_rate and first == last):
            points.append(None)
        elif is_rate:
            grown, passed = value(samples[last]) - value(samples[first]), times[last] - times[first]
            points.append(max(0.0, grown / passed) if passed > 0 else None)
        else:
            points.append(value(samples[last]))
    return points


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 1.0
    while power < value:
        power *= 10
    while power / 10 >= value:
        power /= 10
    return next(power * part for part in (0.1, 0.2, 0.5, 1.0) if power * part >= value)


def _lines(points: Sequence[float | None], top: float) -> list[Markup]:
    """A line and the area below it for each run of known points."""
    floor, drawn = _HEIGHT - _BOTTOM, []
    run: list[tuple[float, float]] = []
    for index, point in enumerate([*points, None]):
        if point is not None:
            x = _LEFT + (_WIDTH - 2 - _LEFT) * (index + 1) / len(points)
            run.append((x, floor - (floor - _TOP) * min(1.0, point / top)))
            continue
        if run:
            run.insert(0, (run[0][0] - (_WIDTH - 2 - _LEFT) / len(points), run[0][1]))
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in run)
            area = f"{run[0][0]:.1f},{floor} {line} {run[-1][0]:.1f},{floor}"
            drawn += [tag("polygon", points=area, class_="area"), tag("polyline", points=line, class_="line")]
        run = []
    return drawn


def _mark(text: str, part: float) -> Markup:
    y = _TOP + (_HEIGHT - _BOTTOM - _TOP) * part
    line = tag("line", x1=_LEFT, x2=_WIDTH - 2, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="axis")
    return join(line, tag("text", text, x=_LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"))


def _label(x: int, text: str, anchor: str) -> Markup:
    return tag("text", text, x=x, y=_HEIGHT - 5, text_anchor=anchor)
