"""From bytes to text and back."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.source import reading
from ctxlint.source.decode import decode, encode
from ctxlint.source.reading import Undecodable, Unreadable, read_bytes
from ctxlint.source.source import Source

if TYPE_CHECKING:
    from pathlib import Path

BOM = b"\xef\xbb\xbf"


def undecodable(data: bytes) -> str:
    with pytest.raises(Undecodable) as error:
        decode("a.py", data)
    return str(error.value)


def unreadable(path: str | Path) -> str:
    with pytest.raises(Unreadable) as error:
        read_bytes(str(path))
    return str(error.value)


# Text


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"x = 1", "utf-8", "x = 1"),
        (b"x = 1\r\ny\rz\n", "utf-8", "x = 1\r\ny\rz\n"),
        (b"\x0c\x0b\x1c\xc2\x85\xe2\x80\xa8\n", "utf-8", "\x0c\x0b\x1c\x85\u2028\n"),
        ("'é日😀'\n".encode(), "utf-8", "'é日😀'\n"),
        (b"'\xef\xbb\xbf'\n", "utf-8", "'\ufeff'\n"),
        (b"# coding: utf-8\n'\xc3\xa9'\n", "utf-8", "# coding: utf-8\n'é'\n"),
        (b"# -*- coding: UTF8 -*-\n", "utf-8", "# -*- coding: UTF8 -*-\n"),
        (b"# coding: utf-8-sig\n", "utf-8", "# coding: utf-8-sig\n"),
        (b"# coding: latin-1\n'\xe9'\n", "iso-8859-1", "# coding: latin-1\n'é'\n"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=latin_1 :\n'\xe9'", "iso-8859-1", None),
        (b"\n# coding: cp1252\n'\x80'\n", "cp1252", "\n# coding: cp1252\n'€'\n"),
        (b"#!x\r# coding: cp1252\r'\x80'\r", "cp1252", "#!x\r# coding: cp1252\r'€'\r"),
        (b"#!x\r\n# coding: cp1252\r\n'\x80'\r\n", "cp1252", "#!x\r\n# coding: cp1252\r\n'€'\r\n"),
        (b"# \xe9\n# coding: latin-1\n", "iso-8859-1", "# é\n# coding: latin-1\n"),
        (b"# coding: ascii\nx\n", "ascii", "# coding: ascii\nx\n"),
        (b"# coding: euc_jp\n'\xa4\xa2'\n", "euc_jp", "# coding: euc_jp\n'あ'\n"),
        (b"# coding: shift_jis\n'\x83\x5c'\n", "shift_jis", "# coding: shift_jis\n'ソ'\n"),
        (b"# coding: gb18030\n'\x81\x30\x81\x30'\n", "gb18030", "# coding: gb18030\n'\x80'\n"),
        (b"x = 1\n# coding: latin-1\n", "utf-8", "x = 1\n# coding: latin-1\n"),
        (b"\n\n# coding: latin-1\n", "utf-8", "\n\n# coding: latin-1\n"),
        (b"# a\rx = 'coding: latin-1'\r'\xc3\xa9'\r", "utf-8", "# a\rx = 'coding: latin-1'\r'é'\r"),
        (b"x = 'coding: nonsense'\n", "utf-8", "x = 'coding: nonsense'\n"),
    ],
)
def test_text_comes_as_it_is_and_goes_back_byte_for_byte(data: bytes, encoding: str, text: str | None) -> None:
    source = decode("some/a.py", data)
    assert (source.path, source.encoding, source.bom) == ("some/a.py", encoding, False)
    assert text is None or source.text == text
    assert encode(source, source.text) == data


def test_a_byte_order_mark_is_no_text_and_comes_back() -> None:
    for data in (BOM, BOM + b"x = 1\r\n", BOM + "# coding: utf-8\n'é'\n".encode(), BOM + b"# coding: utf8\n"):
        source = decode("a.py", data)
        assert source.bom
        assert source.encoding == "utf-8"
        assert "\ufeff" not in source.text
        assert encode(source, source.text) == data


def test_an_edit_is_written_in_the_encoding_of_the_file() -> None:
    source = decode("a.py", b"# coding: latin-1\nx\n")
    assert encode(source, source.text + "'é'") == b"# coding: latin-1\nx\n'\xe9'"
    with pytest.raises(Undecodable, match="iso-8859-1 cannot encode '日'"):
        encode(source, "日")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x\ny\r\n\r'\xe9'\n", "The file is not valid UTF-8 (line 4, byte 0xe9) and declares no other encoding"),
        (BOM + b"\n\xff", "The file is not valid UTF-8 (line 2, byte 0xff) and declares no other encoding"),
        (b"'\xed\xa0\x80'", "The file is not valid UTF-8 (line 1, byte 0xed) and declares no other encoding"),
        (b"# coding: ascii\n'\xe9'", "The file declares ascii but is not valid ascii (line 2, byte 0xe9)"),
        (b"# coding: cp1252\n\n'\x81'", "The file declares cp1252 but is not valid cp1252 (line 3, byte 0x81)"),
        (b"# coding: nonsense\n", "The file declares the encoding nonsense, which Python does not support"),
        (b"#\n# coding: utf-9\n", "The file declares the encoding utf-9, which Python does not support"),
        (b"# coding: rot13\n", "The file declares rot13, which is not an encoding for source code"),
        (b"# coding: hex\n", "The file declares hex, which is not an encoding for source code"),
        (b"# coding: utf-16\nxx", "The file declares utf-16, which is not an encoding for source code"),
        (b"# coding: cp037\n", "The file declares cp037, which is not an encoding for source code"),
        (b"# coding: utf-7\n+AGE-", "The file is in utf-7, which does not preserve its text when it is written"),
        (
            BOM + b"# coding: latin-1\n",
            "The file starts with the byte order mark of UTF-8 but declares iso-8859-1; remove one of the two",
        ),
        ("x".encode("utf-16"), "The file is in UTF-16, which Python cannot read; save it as UTF-8"),
        (b"\xfe\xff\0x", "The file is in UTF-16, which Python cannot read; save it as UTF-8"),
        ("x".encode("utf-32"), "The file is in UTF-32, which Python cannot read; save it as UTF-8"),
        (b"x\r\ny\0z", "The file contains a null byte (line 2), so it is not Python source"),
        (b"x\0", "The file contains a null byte (line 1), so it is not Python source"),
    ],
)
def test_what_is_no_text_is_said_clearly(data: bytes, message: str) -> None:
    assert undecodable(data) == message


def test_python_agrees_on_what_is_text(tmp_path: Path) -> None:
    """Whatever ``decode`` accepts, Python's compiler decodes to the same text."""
    for at, data in enumerate(
        [
            *[b"x = '\xc3\xa9'\n", BOM + b"x = '\xc3\xa9'\r\n", b"# coding: latin-1\nx = '\xe9'\n"],
            *[
                b"#!x\n# coding: cp1252\nx = '\x80'\n",
                b"# coding: euc_jp\nx = '\xa4\xa2'\n",
                b"\n\n# coding: cp1252\nx = '\xc3\xa9'",
            ],
            *[b"\n# coding: latin-1\nx = '\xe9'\n", b"y = 1\n# coding: latin-1\nx = '\xc3\xa9'\n"],
        ]
    ):
        path = tmp_path / f"{at}.py"
        path.write_bytes(data)
        of_the_bytes: dict[str, Any] = {}
        of_the_text: dict[str, Any] = {}
        exec(compile(data, str(path), "exec"), of_the_bytes)
        exec(compile(decode(str(path), data).text, str(path), "exec"), of_the_text)
        assert of_the_bytes["x"] == of_the_text["x"]


# Reading


@pytest.mark.parametrize("size", [0, 1, 100, 100_000])
def test_the_whole_content_is_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"\r\n\x1a\0" * size)
    assert read_bytes(str(path)) == b"\r\n\x1a\0" * size


def test_a_file_of_a_hundred_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    line = b"x = 1  # nothing\n"
    with path.open("wb") as file:
        file.write(line * (100_000_000 // len(line)))
    start = time.monotonic()
    data = read_bytes(str(path))
    assert len(data) == path.stat().st_size
    assert undecodable(data) == "The code has more than 2,000,000 characters, the most that ctxlint analyses"
    assert time.monotonic() - start < 30


def test_large_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_CHUNK", 7)
    path = tmp_path / "a.py"
    for size in range(25):
        path.write_bytes(bytes(range(size)))
        assert read_bytes(str(path)) == bytes(range(size))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_file_that_claims_to_be_empty() -> None:
    assert b"Name:" in read_bytes("/proc/self/status")


def test_why_a_file_cannot_be_read(tmp_path: Path) -> None:
    assert unreadable(tmp_path / "nowhere.py") == "No such file or directory"
    assert unreadable(tmp_path) == "Is a directory"
    assert "embedded null" in unreadable("a\0b.py")  # a byte, or since Python 3.13 a character
    (tmp_path / "a.py").touch()
    assert unreadable(tmp_path / "a.py" / "b.py") == "Not a directory"
    os.symlink("nowhere", tmp_path / "broken.py")
    assert unreadable(tmp_path / "broken.py") == "No such file or directory"
    os.symlink("loop.py", tmp_path / "loop.py")
    assert "symbolic links" in unreadable(tmp_path / "loop.py")
    assert unreadable(tmp_path / ("x" * 300)) == "File name too long"


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.touch(mode=0)
    if os.geteuid() == 0:  # root may read everything

        def refuse(*_: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    assert unreadable(path) == "Permission denied"


def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    start = time.monotonic()
    assert unreadable(tmp_path / "pipe.py") == "Not a regular file"
    assert unreadable("/dev/zero") == "Not a regular file"
    assert time.monotonic() - start < 5


def test_a_failure_while_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text("x", encoding="utf-8")

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    monkeypatch.setattr(os, "read", fail)
    assert unreadable(path) == "Input/output error"
    monkeypatch.undo()
    assert before == (len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0)


def test_a_file_too_large_for_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.touch()

    def fail(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr(os, "read", fail)
    assert unreadable(path) == "Not enough memory to read it"


def test_source_with_a_lone_surrogate_cannot_be_written() -> None:
    with pytest.raises(Undecodable, match="cannot encode"):
        encode(Source("a.py", ""), "\ud800")
