"""One line that says how a long session is doing, drawn behind pytest's own on a terminal and nowhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_saber.runner.scheduler import Progress

SAVE, RESTORE, ERASE_TO_END = "\x1b7", "\x1b8", "\x1b[K"
NARROWEST = 20


class ProgressLine:
    """Thread-safe. Draws only while the main thread waits for a run, so that it never mixes with pytest's output."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._terminal: IO[str] | None = None
        self._waiting = False
        self._begin = time.monotonic()
        self.total = 0
        self._done = 0
        self._running = 0
        self._harmful = 0

    def open(self, total: int) -> None:
        """Begin, for `total` runs, if pytest writes to a terminal."""
        self.total = total
        self._begin = time.monotonic()
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or not getattr(reporter, "isatty", False) or self._config.get_verbosity() < 0:
            return
        try:
            # pytest captures the standard streams; the terminal itself is not captured.
            self._terminal = open("/dev/tty", "w", encoding="utf-8")  # noqa: SIM115, PTH123 - closed by `close`
        except OSError:
            self._terminal = None

    def close(self) -> None:
        """Erase the line and draw no more. Idempotent."""
        with self._lock:
            self._write(ERASE_TO_END)
            if self._terminal is not None:
                self._terminal.close()
                self._terminal = None

    def count(self, harmful: bool) -> None:
        """One more run is done."""
        with self._lock:
            self._done += 1
            self._harmful += harmful
            self._draw()

    def on_change(self, progress: Progress) -> None:
        """What the scheduler reports."""
        with self._lock:
            self._running = progress.running
            self._draw()

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """While pytest prints: the line is away, and drawn again afterwards where no wait draws it (an xdist controller)."""
        with self._lock:
            self._write(ERASE_TO_END)
        yield
        with self._lock:
            self._draw()

    def stay(self) -> None:
        """Draw between pytest's own writes, not only while the main thread waits."""
        self._waiting = True

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While the main thread waits for a run."""
        with self._lock:
            self._waiting = True
            self._draw()
        try:
            yield
        finally:
            with self._lock:
                self._waiting = False
                self._write(ERASE_TO_END)

    def say(self, line: str) -> None:
        """A slow step that the user should know of, such as the building of the image."""
        self.write_line(f"saber: {line}")

    def write_line(self, line: str) -> None:
        """A line of its own between pytest's."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            with self._lock:
                reporter.ensure_newline()
                reporter.write_line(line)

    def text(self, room: int) -> str:
        """`saber: 12/40 done, 4 running, 3 harmful, about 2 min left`, or as much of it as fits."""
        parts = [f"saber: {self._done}/{self.total} done", f"{self._harmful} harmful"]
        if self._running:
            parts.insert(1, f"{self._running} running")
        if 0 < self._done < self.total:
            left = (time.monotonic() - self._begin) / self._done * (self.total - self._done)
            parts.append(f"about {_duration(left)} left")
        while len(", ".join(parts)) > room and len(parts) > 1:
            parts.pop()
        return ", ".join(parts)[:room]

    def _draw(self) -> None:
        if not self._waiting or self._terminal is None:
            return
        writer = self._config.get_terminal_writer()
        room = writer.fullwidth - writer.width_of_current_line - 2
        if room >= NARROWEST:
            self._write(f"{SAVE} {self.text(room)}{ERASE_TO_END}{RESTORE}")

    def _write(self, text: str) -> None:
        if self._terminal is None:
            return
        try:
            self._terminal.write(text)
            self._terminal.flush()
        except OSError:
            # The terminal is gone (its window was closed): nobody is left to inform.
            self._terminal = None


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
