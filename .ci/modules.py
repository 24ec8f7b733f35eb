"""Writes docs/reference/modules.md: every module with the first sentence of its docstring, room by room."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "modules.md"
PACKAGES = ("streaming", "table", "pyspark_hudistream", "hudistream")


def summary_of(path: Path) -> str:
    """The first sentence of a module's docstring, as text of a Markdown table."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def page() -> str:
    """The text of the page."""
    parts = [
        "# Modules",
        "",
        "Each module with the first sentence of its docstring. `python .ci/modules.py` writes this page.",
        "",
    ]
    folders = sorted({path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")})
    for folder in folders:
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        room = folder.relative_to(ROOT)
        parts += [f"## {room}/", "", summary_of(folder / "__init__.py"), ""]
        if modules:
            parts += ["| module | |", "|---|---|", *(f"| `{path.name}` | {summary_of(path)} |" for path in modules), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
