"""Writing: whole or not at all, whatever fails and when."""

import errno
import os
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from isde.files import check_room, whole_file, whole_folder


def tree(folder):
    return {str(p.relative_to(folder)): p.read_text() if p.is_file() else None for p in folder.rglob("*")}


def fill(folder):
    with whole_folder(folder) as staging:
        (staging / "inner").mkdir()
        (staging / "inner" / "a").write_text("new")
        (staging / "b").write_text("new")


def test_a_full_disk_is_said_with_the_name_of_the_file(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(OSError, match=r"No space left on device: .*table\.csv"),
        whole_file(tmp_path / "table.csv") as f,
    ):
        f.write(b"some")
    assert tree(tmp_path) == {}


def test_a_file_appears_when_it_is_complete(tmp_path):
    with whole_file(tmp_path / "a") as file:
        file.write(b"some")
        assert not (tmp_path / "a").exists()
        file.write(b" text")
    assert tree(tmp_path) == {"a": "some text"}


def test_a_folder_appears_when_it_is_complete_with_the_parents_it_needs(tmp_path):
    folder = tmp_path / "some" / "where" / "run"
    fill(folder)
    assert tree(folder) == {"inner": None, "inner/a": "new", "b": "new"}
    assert [p.name for p in folder.parent.iterdir()] == ["run"]


def test_a_folder_takes_the_place_of_an_earlier_one(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "old").write_text("old")
    fill(tmp_path / "run")
    assert tree(tmp_path) == {"run": None, "run/inner": None, "run/inner/a": "new", "run/b": "new"}


@pytest.mark.parametrize("failing", ["write", "fsync", "replace", "second replace"])
@pytest.mark.parametrize("there", [True, False])
def test_what_fails_leaves_everything_as_it_was(tmp_path, monkeypatch, failing, there):
    folder = tmp_path / ("run" if there else "some/where/run")
    if there:
        folder.mkdir()
        (folder / "precious").write_text("old")
    before, calls, replace = tree(tmp_path), [], os.replace

    def fail(*arguments):
        calls.append(arguments)
        if failing == "second replace" and len(calls) != (2 if there else 1):
            return replace(*arguments)
        raise OSError("disk full")

    if failing == "write":
        monkeypatch.setattr(Path, "write_text", fail)
    else:
        monkeypatch.setattr(os, failing.split()[-1], fail)
    with pytest.raises(OSError, match="disk full"):
        fill(folder)
    assert calls
    assert tree(tmp_path) == before


def test_looking_for_room_leaves_nothing_and_says_where_there_is_none(tmp_path):
    check_room(tmp_path / "some" / "where" / "run")
    assert tree(tmp_path) == {}
    for folder in (tmp_path / "some" / ("long" * 100) / "run", tmp_path / "some" / ("long" * 100)):
        with pytest.raises(OSError, match="long"):
            check_room(folder)
    assert tree(tmp_path) == {}


def test_threads_that_write_leave_the_permissions_of_new_files_as_they_were(tmp_path, monkeypatch):
    """The system tells a process its umask only in exchange for another one."""
    own, looks = [0o027], []

    def umask(new):
        before, own[0] = own[0], new
        looks.append(new)
        time.sleep(0.02)  # another thread runs
        return before

    def write(name):
        with whole_file(tmp_path / name):
            pass

    monkeypatch.setattr(os, "umask", umask)
    threads = [threading.Thread(target=write, args=(f"{i}",)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert own == [0o027]
    assert set(looks) == {0o027, 0o077}  # whatever else is made meanwhile is private
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o640}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows files have no such permissions.")
def test_what_is_written_has_the_permissions_of_anything_new(tmp_path):
    fill(tmp_path / "run")
    with whole_file(tmp_path / "file"):
        pass
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "file").touch()
    for ours, plain in (("run", "plain"), ("file", "plain/file"), ("run/b", "plain/file")):
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in (ours, plain)]
        assert modes[0] == modes[1]
