"""Ctrl-C or SIGTERM at a random moment: its exit code within two seconds, nothing left, and on to the same model."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import numpy as np

TRIES, FEW = 20, 2

LIMIT_SECONDS, PATIENCE_SECONDS = 2.0, 60.0
"""By the clock, from the signal to the end of the process; how long it is waited for."""


def run(tries: int, folder: Path, rng: np.random.Generator) -> Generator[str | None, None, str]:
    np.savetxt(folder / "data.csv", rng.normal(size=(80, 5)), delimiter=",", header=",".join("abcde"), comments="")
    if _start(folder, "alone").wait() != 0:
        raise RuntimeError("a run that is left alone fails")
    whole, took = (folder / "alone" / "model.isde").read_bytes(), list[tuple[float, float]]()
    for number in range(tries):
        yield _one(folder, f"run-{number}", (signal.SIGINT, signal.SIGTERM)[number % 2], rng, whole, took)
    processor, clock = np.array(took).T
    return (
        f"from signal to exit {np.median(clock):.2f} s in the middle, {clock.max():.2f} s at most, by the clock, with "
        f"a load of {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores; {np.median(processor):.2f} s and "
        f"{processor.max():.2f} s of a processor"
    )


def _start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    call = [
        "fit",
        "data.csv",
        "-o",
        name,
        "--marginal",
        "stack",
        "-k",
        "2",
        "--jobs",
        "2",
        "--alpha",
        "none",
        "--quiet",
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "isde", *call], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, start_new_session=True,
    )  # fmt: skip


def _one(
    folder: Path,
    name: str,
    number: signal.Signals,
    rng: np.random.Generator,
    whole: bytes,
    took: list[tuple[float, float]],
) -> str | None:
    process, place = _start(folder, name), folder / name
    while process.poll() is None and not (place / "scores.log").exists():
        time.sleep(0.01)
    time.sleep(float(rng.uniform(0, 1)))
    before = _seconds_of_ended() + _seconds_so_far(process.pid)
    process.send_signal(number)
    begun = time.monotonic()
    try:
        code = process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return f"{place}: no end {PATIENCE_SECONDS:g} s after {number.name}"
    took.append((_seconds_of_ended() - before, time.monotonic() - begun))
    if took[-1][1] > LIMIT_SECONDS:
        return f"{place}: {took[-1][1]:.2f} s after {number.name}"
    if code not in (0, 128 + number):
        return f"{place}: exit code {code} after {number.name}"
    left = [path.name for path in place.glob(".*")]
    time.sleep(1)
    with_it = subprocess.run(["ps", "-o", "pid=", "-g", str(process.pid)], capture_output=True, text=True, check=False)
    if left or with_it.stdout.split():
        return f"{place}: {left or 'processes ' + with_it.stdout} left after {number.name}"
    if _start(folder, name).wait() != 0:
        return f"{place}: does not go on after {number.name}"
    return None if (place / "model.isde").read_bytes() == whole else f"{place}: another model after {number.name}"


def _seconds_of_ended() -> float:
    """Of a processor, by all that this process started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seconds_so_far(pid: int) -> float:
    """Of a processor, by one that runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:  # it has ended, or this is no Linux
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
