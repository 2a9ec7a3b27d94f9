"""The table of `docs/options.md`, made from the plugin's settings. Run as a program, it writes the table into the page."""

from __future__ import annotations

from pathlib import Path

from pytest_saber.pytest_glue.settings import TABLE, Group, Setting

PAGE = Path(__file__).parent.parent.parent / "docs" / "options.md"
BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"
HEADS = {Group.RUN: "Runs", Group.GATE: "The gate", Group.REPORT: "Reports"}


def table() -> str:
    """Markdown, a section for each group of settings."""
    parts = []
    for group, head in HEADS.items():
        rows = [row(setting) for setting in TABLE if setting.group is group]
        parts.append(
            f"## {head}\n\n| option | ini | environment | meaning |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
        )
    return "\n".join(parts)


def row(setting: Setting) -> str:
    option = "" if setting.ini_only else f"`{setting.option}`"
    variable = "" if setting.ini_only else f"`{setting.variable}`"
    text = setting.help.replace("%%", "%").replace("|", "\\|")
    if setting.choices:
        text += f" ({', '.join(f'`{choice}`' for choice in setting.choices)})"
    if setting.default and setting.name != "jobs":
        text += f"; default `{setting.default}`"
    return f"| {option} | `{setting.ini}` | {variable} | {text} |"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    start, stop = page.index(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:start]}{BEGIN}\n{table()}{page[stop:]}", encoding="utf-8")
