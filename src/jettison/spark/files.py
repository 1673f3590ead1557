"""Small files of the checkpoint, written atomically: on this machine, or wherever Hadoop's file systems reach."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlparse

from pyspark.sql import SparkSession

_PATTERN = re.compile(r"[\[\]{}*?\\]")


class Folder(Protocol):
    """A folder of small text files. `write` replaces a file in one step: a reader sees the old or the new one.

    `names` are those of files, `folders` those of folders, in a folder below this one ("": in this one).
    `delete` removes a file, or a folder with all that is in it; what is gone already is no fault.
    """

    def read(self, name: str) -> str | None: ...

    def write(self, name: str, text: str) -> None: ...

    def names(self, below: str) -> list[str]: ...

    def folders(self, below: str) -> list[str]: ...

    def delete(self, name: str) -> None: ...


class LocalFolder:
    """A folder on this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: set[Path] = set()

    def read(self, name: str) -> str | None:
        try:
            return (self._path / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        target = self._path / name
        if target.parent not in self._known:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._known.add(target.parent)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(target)

    def names(self, below: str) -> list[str]:
        folder = self._path / below
        if not folder.is_dir():
            return []
        return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))

    def folders(self, below: str) -> list[str]:
        folder = self._path / below
        return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []

    def delete(self, name: str) -> None:
        target = self._path / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)


class HadoopFolder:
    """A folder on any of Hadoop's file systems (HDFS, S3, ...), through the driver's JVM."""

    def __init__(self, path: str, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._path = path.rstrip("/")
        self._jvm = jvm
        conf = spark._jsc.hadoopConfiguration()
        self._files = jvm.org.apache.hadoop.fs.Path(self._path).getFileSystem(conf)

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._path}/{name}")

    def read(self, name: str) -> str | None:
        if not self._files.exists(self._at(name)):
            return None
        stream = self._files.open(self._at(name))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        draft = self._at(f"{name}.{os.getpid()}.draft")
        stream = self._files.create(draft, True)
        stream.write(bytearray(text, "utf-8"))
        stream.hsync()
        stream.close()
        if self._files.exists(self._at(name)):
            self._files.delete(self._at(name), False)
        if not self._files.rename(draft, self._at(name)):
            raise OSError(f"cannot rename {draft} to {name}: is the folder writable?")

    def names(self, below: str) -> list[str]:
        if not self._files.exists(self._at(below)):
            return []
        files = [status for status in self._files.listStatus(self._at(below)) if status.isFile()]
        found = [str(status.getPath().getName()) for status in files]
        return sorted(name for name in found if not name.startswith(".") and not name.endswith((".draft", ".crc")))

    def folders(self, below: str) -> list[str]:
        folder = self._at(below) if below else self._jvm.org.apache.hadoop.fs.Path(self._path)
        if not self._files.exists(folder):
            return []
        return sorted(str(each.getPath().getName()) for each in self._files.listStatus(folder) if each.isDirectory())

    def delete(self, name: str) -> None:
        self._files.delete(self._at(name), True)


def resolved(path: str, spark: SparkSession) -> str:
    """A path that Python and Spark read alike: absolute on this machine, a URI where Spark keeps files elsewhere."""
    parts = urlparse(path)
    conf = spark._jsc.hadoopConfiguration()
    local = str(conf.get("fs.defaultFS")).startswith("file:")
    if local and parts.scheme in ("", "file"):
        return os.path.abspath(parts.path if parts.scheme else path)
    if parts.scheme != "":
        return path.rstrip("/")
    jvm: Any = spark._jvm
    hadoop_path = jvm.org.apache.hadoop.fs.Path(path)
    return str(hadoop_path.getFileSystem(conf).makeQualified(hadoop_path).toString())


def open_folder(path: str, spark: SparkSession) -> Folder:
    """The folder at a path or URI."""
    scheme = urlparse(path).scheme
    return LocalFolder(Path(path)) if scheme == "" else HadoopFolder(path, spark)


def as_it_stands(path: str) -> str:
    r"""A path for Spark's readers, which take brackets and stars for patterns: with these escaped it is a name.

    Their option to take paths as names, `__globPaths__`, reads each of several such paths as often as there are.

    >>> print(as_it_stands("out/run [1]/state"))
    out/run \[1\]/state
    """
    return _PATTERN.sub(r"\\\g<0>", path)
