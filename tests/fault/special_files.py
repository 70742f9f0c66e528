"""A pipe, a device, a socket or a folder wherever a file is read or written: one sentence, and no waiting."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

TRIES, FEW = 1_000, 8
"""At most: there are fewer cases."""

PATIENCE_SECONDS = 30
"""So long that a busy machine is no hang."""

LOADED = ("estimator", "artifacts", "inspection", "cli.runs", "data.readers.text", "data.readers.parquet")
"""Modules that commands would load when they run."""

RUN_FILES = ("manifest.json", "scores.log", "lock", "model.isde", "summary.json")


def run(tries: int, folder: Path, rng: np.random.Generator) -> Iterator[str | None]:
    if os.name == "nt":
        return
    np.savetxt(folder / "data.csv", rng.normal(size=(40, 3)), delimiter=",", header="a,b,c", comments="")
    isde = _Program()
    try:
        if isde(folder, [*_FIT, "run"]) != (0, (folder / "said.txt").read_text()):
            raise RuntimeError("a run that is left alone fails")
        cases = [(kind, use) for kind in KINDS for use in [*_READS, *RUN_FILES]]
        if tries < len(cases):
            cases = [cases[i] for i in rng.permutation(len(cases))[:tries]]
        for number, (kind, use) in enumerate(cases):
            place = folder / f"case-{number}"
            place.mkdir()
            yield _one(isde, folder, place, kind, use)
    finally:
        isde.stop()


def _one(isde: _Program, folder: Path, place: Path, kind: str, use: str) -> str | None:
    if use in RUN_FILES:
        shutil.copytree(folder / "run", place / "run")
        path = place / "run" / use
        path.unlink()
        arguments: list[str] = [str(folder / one) if one == "data.csv" else one for one in [*_FIT, "run"]]
    else:
        path = place / f"special{Path(use.split()[-1]).suffix}"
        arguments = [str(path) if one.startswith("special") else one for one in use.split()]
        arguments = [str(folder / one) if one in ("run", "data.csv") else one for one in arguments]
    KINDS[kind](path)
    found = isde(place, arguments)
    if found is None:
        return f"{place}: {use} as {kind} hangs"
    code, said = found
    lines = said.strip().splitlines()
    if "Traceback" in said or (code != 0 and not (lines and lines[-1].startswith(("Error:", "Usage:")))):
        return f"{place}: {use} as {kind}: exit code {code}: {said[-300:]}"
    # The summary is written anew, in place of what was there; what is read is refused.
    return None if code in (2, 4, 5) or use in ("summary.json", "model.isde") else f"{place}: {use} as {kind} is taken"


_FIT = ["fit", "data.csv", "--marginal", "gaussian", "-k", "2", "--seed", "0", "--alpha", "none", "-o"]
_READS = (
    "fit special.csv -k 2",
    "fit special.npy -k 2",
    "fit special.parquet -k 2",
    "fit special.fcs -k 2",
    "score run special.csv",
    "info special.isde",
)
"""Commands that read; "special" is what they are given instead of a file."""


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as own:
            own.bind(path.name)
    finally:
        os.chdir(here)


KINDS: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda path: os.mkfifo(path),
    "zeros without end": lambda path: os.symlink("/dev/zero", path),
    "a socket": _socket,
    "a folder": lambda path: path.mkdir(),
    "a link to itself": lambda path: os.symlink(path.name, path),
}


class _Program:
    """The command line, loaded once, in a process that forks for each call."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip

    def __call__(self, folder: Path, arguments: list[str]) -> tuple[int, str] | None:
        """Exit code and what was said; None for a command that does not end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(folder), arguments]) + "\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        return None if found is None else tuple(found)

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.communicate()  # which closes what is read and written, and waits


def serve() -> None:
    from isde.cli import COMMANDS, main

    for name in (*(f"cli.{name}" for name in COMMANDS), *LOADED):
        import_module(f"isde.{name}")
    for line in sys.stdin:
        folder, arguments = json.loads(line)
        said = Path(folder) / "said.txt"
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            for number, path in ((0, "/dev/null"), (1, "/dev/null"), (2, said)):
                os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
            try:
                main(arguments, prog_name="isde")
            except SystemExit as end:
                os._exit(end.code if isinstance(end.code, int) else 0)
            except BaseException:
                traceback.print_exc()
            os._exit(99)
        for _ in range(10 * PATIENCE_SECONDS):
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                print(json.dumps([code, said.read_text(errors="replace")]), flush=True)
                break
            time.sleep(0.1)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            print("null", flush=True)


if __name__ == "__main__":
    serve()
