"""Charts as SVG text (pure). Every text from a table is escaped here or in `page`.

Plain SVG without a library: the charts need only bars, rectangles and lines, and the file has to stand alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HALF, HEIGHT = 720, 400, 180
_BASE, _TOP = 157, 24
_LETTER = 11  # most width of a letter of a label, where the drawing is shown narrow and its text is larger


@dataclass(frozen=True)
class Bar:
    """One bar: its parts from the bottom up, each (css class, value), a label below, and a text for the pointer."""

    parts: tuple[tuple[str, float], ...]
    label: str
    title: str

    @property
    def value(self) -> float:
        """Sum of the values of all parts."""
        return sum(value for _, value in self.parts)


def bar_chart(bars: Sequence[Bar], unit: str, name: str, *, width: int = WIDTH, labels: int = 5) -> str:
    """Bars side by side.

    Args:
        bars: from left to right.
        unit: the greatest value in words, written at the top.
        name: name of the chart, for screen readers.
        width: width of the drawing in its own units. A drawing that is shown narrower has fewer units, so that its text
            has the same size.
        labels: number of bars, evenly chosen, that show their label.
    """
    if not bars:
        return '<p class="none">Nothing to show.</p>'
    most = max(bar.value for bar in bars) or 1.0
    step = width / len(bars)
    wide = max(1.0, min(step * 0.8, 90.0))
    every = max(1, -(-len(bars) // labels))
    drawn = [f'<text class="axis" x="0" y="16">{escape(unit)}</text>']
    drawn.append(f'<line class="axis" x1="0" y1="{_BASE}" x2="{width}" y2="{_BASE}"/>')
    free = 0.0  # from where on no label stands
    for number, bar in enumerate(bars):
        left, bottom = number * step + (step - wide) / 2, float(_BASE)
        pieces = []
        for style, value in bar.parts:
            high = (_BASE - _TOP) * value / most
            if high > 0:
                bottom -= high
                pieces.append(_rect(style, left, bottom, wide, high))
        drawn.append(f"<g><title>{escape(bar.title)}</title>{''.join(pieces)}</g>")
        if number % every == 0:
            long = len(bar.label) * (_LETTER if width == WIDTH else 0.6 * _LETTER)
            is_last = left + long > width  # the label ends below the bar, so that it does not leave the drawing
            at, anchor = (left + wide, ' text-anchor="end"') if is_last else (left, "")
            begins = at - long if is_last else at
            if begins >= free:
                free = begins + long
                drawn.append(f'<text class="axis" x="{at:.1f}" y="{_BASE + 18}"{anchor}>{escape(bar.label)}</text>')
    return _svg(drawn, HEIGHT, name, width)


def share_bar(parts: Sequence[tuple[str, float, str]], name: str) -> str:
    """One divided bar: (css class, value, text for the pointer) of each part."""
    whole = sum(value for _, value, _ in parts)
    if not whole:
        return '<p class="none">Nothing to show.</p>'
    drawn, left = [], 0.0
    for style, value, title in parts:
        wide = WIDTH * value / whole
        if wide > 0:
            drawn.append(f"<g><title>{escape(title)}</title>{_rect(style, left, 0.0, wide, 34.0)}</g>")
        left += wide
    return _svg(drawn, 34, name)


def treemap(items: Sequence[tuple[str, float, str]], name: str) -> str:
    """Rectangles whose areas are values: (label, value, text for the pointer) of each, largest first.

    The rectangles are as near to squares as the order allows (squarified treemap, Bruls et al. 2000).
    """
    shown = [item for item in items if item[1] > 0]
    if not shown:
        return '<p class="none">Nothing to show.</p>'
    drawn = []
    for number, ((label, _, title), (x, y, w, h)) in enumerate(
        zip(shown, place_squares([value for _, value, _ in shown], WIDTH, 300), strict=True)
    ):
        text = ""
        if w > 54 and h > 16:
            letters = max(1, int(w / 7))
            short = label if len(label) <= letters else label[: letters - 1] + "…"
            text = f'<text class="tile" x="{x + 4:.1f}" y="{y + 14:.1f}">{escape(short)}</text>'
        tile = _rect(f"t{number % 4}", x, y, max(0.5, w - 1), max(0.5, h - 1))
        drawn.append(f"<g><title>{escape(title)}</title>{tile}{text}</g>")
    return _svg(drawn, 300, name)


def place_squares(values: Sequence[float], width: float, height: float) -> list[tuple[float, float, float, float]]:
    """Divides a rectangle into rectangles (x, y, width, height) with areas in proportion to values, in order.

    Args:
        values: positive values, largest first.
        width: width of the whole.
        height: height of the whole.
    """
    scale = width * height / sum(values)
    areas = [value * scale for value in values]
    placed: list[tuple[float, float, float, float]] = []
    x = y = 0.0
    start = 0
    while start < len(areas):
        along = min(width - x, height - y)
        end, best = start + 1, _worst(areas[start : start + 1], along)
        while end < len(areas) and (next_one := _worst(areas[start : end + 1], along)) <= best:
            end, best = end + 1, next_one
        row = areas[start:end]
        thick = sum(row) / along if along > 0 else 0.0
        at = 0.0
        is_column = width - x >= height - y
        for area in row:
            long = area / thick if thick > 0 else 0.0
            placed.append((x, y + at, thick, long) if is_column else (x + at, y, long, thick))
            at += long
        if is_column:
            x += thick
        else:
            y += thick
        start = end
    return placed


def _worst(row: Sequence[float], along: float) -> float:
    """The greatest ratio of sides in a row of areas."""
    whole = sum(row)
    if not whole or along <= 0:
        return float("inf")
    return max(along * along * max(row) / whole**2, whole**2 / (along * along * min(row)))


def size_bins(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """(lower bound, number of files) for powers of two, from the smallest file size to the largest."""
    if not sizes:
        return []
    powers = [max(0, size.bit_length() - 1) for size in sizes]
    counts = dict.fromkeys(range(min(powers), max(powers) + 1), 0)
    for power in powers:
        counts[power] += 1
    return [(2**power, count) for power, count in counts.items()]


def _rect(style: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _svg(drawn: Sequence[str], height: int, name: str, width: int = WIDTH) -> str:
    half = "" if width == WIDTH else ' class="half"'
    return (
        f'<svg{half} viewBox="0 0 {width} {height}" role="img" aria-label="{escape(name)}" preserveAspectRatio="none">'
        f"{''.join(drawn)}</svg>"
    )
