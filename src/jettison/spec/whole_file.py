"""A whole specification as plain content: the network, and the sections `profile` and `run` as they were given."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import BaseModel

from jettison.spec.as_yaml import to_dict
from jettison.spec.network_file import Spec


def file_content(spec: Spec) -> dict[str, Any]:
    """What a file has to say for an equal specification.

    >>> from jettison.spec.network_file import from_yaml
    >>> text = "{network: n, sources: {s: {schema: a int}}, outputs: {o: {of: s}}, run: {trigger: 1 second}}"
    >>> file_content(from_yaml(text))["run"]
    {'trigger': '1 second'}
    """
    content = to_dict(spec.graph())
    for name, section in (("profile", spec.profile), ("run", spec.run)):
        if section is not None:
            content[name] = _given(section)
    return content


def file_yaml(spec: Spec) -> str:
    """A whole specification as YAML that `from_yaml` reads back to an equal one."""
    return yaml.safe_dump(file_content(spec), sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)


def _given(section: BaseModel) -> Any:
    """What a file said of a section, without what is as it would be anyway."""
    return _plain(section.model_dump(exclude_unset=True, by_alias=True))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
