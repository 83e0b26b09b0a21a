"""Aligned columns without borders, as kubectl prints them."""

import sys
from collections.abc import Sequence
from typing import Final

import click

GAP: Final = "   "
LONGEST: Final = 80


def show_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = [list(headers), *([plain(cell) or "-" for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    click.echo("\n".join(line.rstrip() for line in lines))


def plain(text: str) -> str:
    """On one line, and without the characters by which a job's text could command somebody's terminal."""
    return printable(text).replace("\n", " ").strip()


def printable(text: str) -> str:
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)


def shortened(text: str | None) -> str:
    """A message's beginning; ids are never shortened."""
    text = plain(text or "")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def note(text: str) -> None:
    """Beside the output, not in it."""
    sys.stdout.flush()
    click.echo(text, err=True)
