"""Published costs in the checkpoint, named by their content: a batch that is repeated uses the same costs.

checkpoint/costs/NAME.pair      a pair of matrices, with its checksum
checkpoint/costs/NAME.keys.json  its dearest and most frequent keys
checkpoint/costs/pairs.json     by operator, the names in the order in which plans began to use them, each with the
                                batch and what the costs are of: the identity of function and key

A pair is written before the first plan that names it. It is deleted when no plan in the log can name it any more.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from jettison.errors import CheckpointError, PlanError
from jettison.spark.checkpoint.sealed import load, write_sealed
from jettison.spark.checkpoint.small_files import Folder
from jettison.statistics.sketches.cost_pair import CostPair

_log = logging.getLogger("jettison")
_FOLDER = "costs"
_INDEX = f"{_FOLDER}/pairs.json"
_REMEDY = "Restore it from a copy; if no batch has to be repeated, delete folder 'costs': costs are learned anew."


class _Used(NamedTuple):
    """A pair, the first batch whose plan named it, and the identity of what its costs are of."""

    name: str
    batch: int
    of: str = ""


class CostPairs:
    """The pairs of one checkpoint."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._read: dict[str, CostPair] = {}
        found = load(folder, _INDEX, "which costs were published", _REMEDY)
        self._used: dict[str, list[_Used]] = {
            operator: [_Used(*each) for each in used] for operator, used in (found or {}).items()
        }

    def read(self, name: str) -> CostPair:
        """The pair of this name; raises CheckpointError where it is gone or damaged."""
        if name not in self._read:
            content = self._folder.read_bytes(_file(name))
            if content is None:
                raise CheckpointError(f"checkpoint: costs {name!r}, file {self._where(name)}, are gone. {_REMEDY}")
            try:
                self._read[name] = CostPair.from_bytes(content)
            except (PlanError, ValueError) as error:
                raise CheckpointError(
                    f"checkpoint: costs {name!r}, file {self._where(name)}, are damaged ({error}). {_REMEDY}"
                ) from error
        return self._read[name]

    def keep(self, operator: str, pair: CostPair, batch: int, keys: Mapping[int, str], of: str = "") -> None:
        """Write a pair down, before the plan of this batch names it, with keys that are worth showing. `of` is the
        identity of what the costs are of."""
        used = self._used.setdefault(operator, [])
        if used and (used[-1].name, used[-1].of) == (pair.name, of):
            return
        self._read = {name: each for name, each in self._read.items() if name in self._newest()} | {pair.name: pair}
        self._folder.write_bytes(_file(pair.name), pair.to_bytes())
        used.append(_Used(pair.name, batch, of))
        self._write_index()
        write_sealed(self._folder, keys_file(pair.name), json.dumps({str(key): text for key, text in keys.items()}))

    def newest(self, identities: Mapping[str, str]) -> dict[str, CostPair]:
        """The pair that was used last, by operator, of those with these identities: costs of another function, or by
        another key, are of no use. Nothing needs it: where it is gone or damaged, costs are learned anew."""
        found = {}
        for operator, of in identities.items():
            used = self._used.get(operator)
            if not used or used[-1].of != of:
                continue
            try:
                found[operator] = self.read(used[-1].name)
            except CheckpointError as error:
                _log.warning("%s They are not needed yet, so costs of map %r are learned anew.", error, operator)
        return found

    def tidy(self, oldest: int) -> None:
        """Delete pairs that only plans before batch `oldest` can name: the next one was in use by then."""
        gone: set[str] = set()
        for operator, used in self._used.items():
            kept = [each for each, after in pairwise(used) if after.batch > oldest] + used[-1:]
            gone |= {each.name for each in used} - {each.name for each in kept}
            self._used[operator] = kept
        gone -= {each.name for used in self._used.values() for each in used}
        if gone:
            self._write_index()
            for name in gone:
                self._folder.delete(_file(name))
                self._folder.delete(keys_file(name))

    def _newest(self) -> set[str]:
        return {used[-1].name for used in self._used.values() if used}

    def _write_index(self) -> None:
        write_sealed(self._folder, _INDEX, json.dumps(self._used))

    def _where(self, name: str) -> str:
        return f"{self._folder.path}/{_file(name)}"


def keys_file(name: str) -> str:
    """Where keys of a pair are named, by their hash; nothing but `explain` reads it."""
    return f"{_FOLDER}/{name}.keys.json"


def _file(name: str) -> str:
    return f"{_FOLDER}/{name}.pair"
