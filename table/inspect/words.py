"""Figures and verdicts in words for people (pure)."""

from table.inspect.health_facts import Verdict

WORDS = {Verdict.WELL: "well", Verdict.LOOK: "needs a look", Verdict.BROKEN: "broken"}


def size_text(size_bytes: int) -> str:
    """A size: ``1.5 MiB``."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return ""


def age_text(seconds: float | None) -> str:
    """A time span in its largest unit of which there are two: ``90 s``, ``3 h``."""
    whole = int(seconds or 0)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= 2 * size:
            return f"{whole // size} {unit}"
    return f"{whole} s"
