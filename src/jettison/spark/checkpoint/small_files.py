"""Small files of the checkpoint, written atomically: on this machine, or wherever Hadoop's file systems reach."""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlparse
from zlib import crc32

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from jettison.errors import CheckpointError

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_RENAME_REPLACES = ("hdfs", "webhdfs", "swebhdfs", "viewfs")
_PLAIN_MANAGER = ".FileSystemBasedCheckpointFileManager"
_BLOCK_BYTES = 2**20
_PATTERN = re.compile(r"[\[\]{}*?\\]")


class Folder(Protocol):
    """A folder of small files. `write` replaces a file in one step: a reader sees the old or the new one.

    `names` are those of files, `folders` those of folders, in a folder below this one ("": in this one).
    `create` writes a file unless there is one already, and says whether it did. `delete` removes a file, or a folder
    with all that is in it; what is gone already is no fault. `head` reads the first bytes of a file, `size` tells how
    many it has (0: there is none), `checksum` is of its content ("" where the file system gives none).
    """

    @property
    def path(self) -> str: ...

    def read(self, name: str) -> str | None: ...

    def read_bytes(self, name: str) -> bytes | None: ...

    def head(self, name: str, count: int) -> bytes | None: ...

    def size(self, name: str) -> int: ...

    def checksum(self, name: str) -> str: ...

    def write(self, name: str, text: str) -> None: ...

    def write_bytes(self, name: str, content: bytes) -> None: ...

    def create(self, name: str, text: str) -> bool: ...

    def names(self, below: str) -> list[str]: ...

    def folders(self, below: str) -> list[str]: ...

    def delete(self, name: str) -> None: ...


def _not_a_file(path: Path) -> CheckpointError:
    return CheckpointError(
        f"checkpoint: {path} is a folder, and a file belongs there. Move it away and restore the file from a copy, or "
        f"start with a new checkpoint."
    )


class LocalFolder:
    """A folder on this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: set[Path] = set()

    @property
    def path(self) -> str:
        return str(self._path)

    def read(self, name: str) -> str | None:
        content = self.read_bytes(name)
        return None if content is None else content.decode()

    def read_bytes(self, name: str) -> bytes | None:
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise _not_a_file(self._path / name) from None

    def head(self, name: str, count: int) -> bytes | None:
        try:
            with (self._path / name).open("rb") as file:
                return file.read(count)
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise _not_a_file(self._path / name) from None

    def size(self, name: str) -> int:
        try:
            return (self._path / name).stat().st_size
        except FileNotFoundError:
            return 0

    def checksum(self, name: str) -> str:
        found = 0
        try:
            with (self._path / name).open("rb") as file:
                while block := file.read(_BLOCK_BYTES):
                    found = crc32(block, found)
        except FileNotFoundError:
            return ""
        except IsADirectoryError:
            raise _not_a_file(self._path / name) from None
        return f"crc32:{found:08x}"

    def write(self, name: str, text: str) -> None:
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, content: bytes) -> None:
        try:
            self._draft(name, content).rename(self._path / name)
        except IsADirectoryError:
            raise _not_a_file(self._path / name) from None

    def create(self, name: str, text: str) -> bool:
        draft = self._draft(name, text.encode())
        try:
            os.link(draft, self._path / name)
            return True
        except FileExistsError:
            return False
        finally:
            draft.unlink()

    def _draft(self, name: str, content: bytes) -> Path:
        """A file beside its later place, on disk."""
        target = self._path / name
        if target.parent not in self._known:
            target.parent.mkdir(parents=True, exist_ok=True)
            self._known.add(target.parent)
        draft = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            with draft.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # such as a full disk, which does not say of which file
            draft.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(target)) from error
        return draft

    def names(self, below: str) -> list[str]:
        try:
            with os.scandir(self._path / below) as found:
                return sorted(each.name for each in found if each.is_file() and not each.name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []

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
    """A folder on any of Hadoop's file systems (HDFS, S3, ...), through the driver's JVM.

    A file is replaced by what each kind of file system does in one step: on HDFS as Spark writes its own checkpoint
    (`FileContext.rename`), on object stores by writing it where it belongs, as an object appears when it is closed. A
    `CheckpointFileManager` that Spark is told to use comes first.
    """

    def __init__(self, path: str, spark: SparkSession) -> None:
        self._path = path.rstrip("/")
        jvm: Any = spark._jvm
        self._jvm = jvm
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        self._files = self._at("").getFileSystem(conf)
        self._manager = self._file_manager(conf)
        self._known: set[str] = set()

    @property
    def path(self) -> str:
        return self._path

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._path}/{name}" if name else self._path)

    def _file_manager(self, conf: Any) -> Any:
        """Who replaces files in one step; None where writing them in place does."""
        managers = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing
        chosen, scheme = conf.get(_MANAGER), str(self._files.getUri().getScheme())
        if chosen is not None and not str(chosen).endswith(_PLAIN_MANAGER):
            return managers.CheckpointFileManager.create(self._at(""), conf)
        # the plain one keeps the old file, and says nothing
        found = scheme in _RENAME_REPLACES
        return managers.FileContextBasedCheckpointFileManager(self._at(""), conf) if found else None

    def read(self, name: str) -> str | None:
        content = self.read_bytes(name)
        return None if content is None else content.decode()

    def read_bytes(self, name: str) -> bytes | None:
        stream = self._opened(name)
        if stream is None:
            return None
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def head(self, name: str, count: int) -> bytes | None:
        stream = self._opened(name)
        if stream is None:
            return None
        try:
            found = [stream.read() for _ in range(count)]  # byte by byte, -1 at the end: buffered there
            return bytes(each for each in found if each >= 0)
        finally:
            stream.close()

    def size(self, name: str) -> int:
        try:
            return int(self._files.getFileStatus(self._at(name)).getLen())
        except Py4JJavaError as error:
            if _is_a(error, "FileNotFoundException"):
                return 0
            raise

    def checksum(self, name: str) -> str:
        """What the file system keeps of a file, as HDFS does; nothing is read for it."""
        try:
            found = self._files.getFileChecksum(self._at(name))
        except Py4JJavaError as error:
            if _is_a(error, "FileNotFoundException"):
                return ""
            raise
        return "" if found is None else f"{found.getAlgorithmName()}:{bytes(found.getBytes()).hex()}"

    def _opened(self, name: str) -> Any:
        """A stream of a file's bytes; None where there is no such file."""
        try:
            return self._files.open(self._at(name))
        except Py4JJavaError as error:
            if _is_a(error, "FileNotFoundException"):
                return None
            raise

    def write(self, name: str, text: str) -> None:
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, content: bytes) -> None:
        target = self._at(name)
        if self._manager is None:
            self._fill(self._files.create(target, True), name, content)
            return
        parent = str(target.getParent())
        if parent not in self._known:
            self._manager.mkdirs(target.getParent())
            self._known.add(parent)
        stream = self._manager.createAtomic(target, True)
        try:
            self._fill(stream, name, content)
        except OSError:
            stream.cancel()
            raise

    def create(self, name: str, text: str) -> bool:
        try:
            stream = self._files.create(self._at(name), False)
        except Py4JJavaError as error:
            if _is_a(error, "FileAlreadyExistsException"):
                return False
            raise
        self._fill(stream, name, text.encode())
        return True

    def _fill(self, stream: Any, name: str, content: bytes) -> None:
        try:
            stream.write(bytearray(content))
            stream.hsync()
            stream.close()
        except Py4JJavaError as error:
            raise OSError(f"cannot write {self._path}/{name}: {error.java_exception}") from error

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


def _is_a(error: Py4JJavaError, name: str) -> bool:
    """Whether Java threw an exception of this class."""
    thrown: Any = error.java_exception
    return str(thrown.getClass().getName()).endswith(f".{name}")


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


def spark_place(path: str, spark: SparkSession) -> str:
    """The folder where Spark's writers find a path, which is relative to where the JVM was started: absolute on this
    machine, else a URI."""
    jvm: Any = spark._jvm
    given = jvm.org.apache.hadoop.fs.Path(path)
    whole = given.getFileSystem(spark._jsc.hadoopConfiguration()).makeQualified(given).toUri()
    return os.path.realpath(str(whole.getPath())) if str(whole.getScheme()) == "file" else str(whole.toString())


def open_folder(path: str, spark: SparkSession) -> Folder:
    """The folder at a path or URI."""
    place = local_place(path)
    return HadoopFolder(path, spark) if place is None else LocalFolder(Path(place))


def local_place(path: str) -> str | None:
    """The path on this machine; None where a URI is of another file system.

    >>> local_place("/data/run"), local_place("file:///data/run"), local_place("hdfs://host/run")
    ('/data/run', '/data/run', None)
    """
    parts = urlparse(path)
    return path if parts.scheme == "" else parts.path if parts.scheme == "file" else None


def as_it_stands(path: str) -> str:
    r"""A path for Spark's readers, which take brackets and stars for patterns: with these escaped it is a name.

    Their option to take paths as names, `__globPaths__`, reads each of several such paths as often as there are.

    >>> print(as_it_stands("out/run [1]/state"))
    out/run \[1\]/state
    """
    return _PATTERN.sub(r"\\\g<0>", path)


def exists(path: str, spark: SparkSession) -> bool:
    """Whether there is a file or folder at a path or URI."""
    jvm: Any = spark._jvm
    where = jvm.org.apache.hadoop.fs.Path(path)
    return bool(where.getFileSystem(spark._jsc.hadoopConfiguration()).exists(where))
