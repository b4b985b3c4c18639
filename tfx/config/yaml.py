"""Read YAML: whole files and the front matter of a skill. Nothing here writes (K-16).

Knows no agent and no path; ruamel.yaml does the parsing, as YAML 1.2 and without object tags.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

from tfx.config.toml.spans import MAX_DEPTH, unparsable, unparsable_at
from tfx.errors import JsonValue, UnparsableFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

MAX_BYTES = 1024 * 1024
"""Larger files are refused: the parser needs about 15 s for this much."""

MAX_VALUES = 100_000
"""Aliases can make a small file huge; beyond this many values it is refused."""

_BOM = "\ufeff"
_FENCE = re.compile(r"---[ \t]*(?:\r?\n|\Z)")
_CLOSING_FENCE = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)

_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset({"str", "null", "bool", "int", "float", "timestamp"})
_SKILL_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_SKILL_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MAX_LENGTH = {"name": 64, "description": 1024, "compatibility": 500}


def parse(data: bytes) -> JsonValue:
    """Return the one document of a YAML file; an empty one is null.

    Dates become ISO 8601 strings. Raises UnparsableFile with line and column for text that is
    not YAML in UTF-8, a second document, a duplicate key, an unknown tag, a key that is no text,
    a value that JSON does not have, and a document that contains itself (S-54).
    """
    return _compose(_decode(data).removeprefix(_BOM))[1]


def front_matter(data: bytes) -> tuple[dict[str, JsonValue], str]:
    """Split a skill into its front matter and the text behind it, which keeps its line ends.

    A byte order mark and CRLF are read over. Raises UnparsableFile, counted in lines of the file,
    when there is no block between two `---` lines or it is no mapping.
    """
    _, values, body = _front_matter(data)
    return values, body


def skill_problems(data: bytes, directory_name: str) -> tuple[str, ...]:
    """Return what keeps a SKILL.md from the strict reading of the Agent Skills format.

    Only keys of the format with text values, `description` quoted, lengths and the pattern of
    `name`, which is the directory's (S-24, S-26); UTF-8, LF, no byte order mark (S-25).
    """
    problems = []
    if data.startswith(_BOM.encode()):
        problems.append("starts with a byte order mark")
    if b"\r" in data:
        problems.append("has line ends other than LF")
    try:
        nodes, values, body = _front_matter(data)
    except UnparsableFile as error:
        return (*problems, error.message)
    if not body.strip():
        problems.append("has no text behind the front matter")
    problems += [f"{key} is missing" for key in ("name", "description") if key not in values]
    for key, value in values.items():
        problems += _key_problems(key, value, nodes[key])
    name = values.get("name")
    if isinstance(name, str) and name != directory_name:
        problems.append(f"name is {name!r}, the directory {directory_name!r}")
    return tuple(problems)


def _key_problems(key: str, value: JsonValue, node: Node) -> list[str]:
    if key not in _SKILL_KEYS:
        return [f"{key!r} is no key of the format"]
    if key == "metadata":
        is_text_map = isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
        return [] if is_text_map else ["metadata is not a map of text to text"]
    if not isinstance(value, str):
        return [f"{key} is not text"]
    problems = []
    if not value.strip():
        problems.append(f"{key} is empty")
    if len(value) > _MAX_LENGTH.get(key, len(value)):
        problems.append(f"{key} has {len(value)} characters, at most {_MAX_LENGTH[key]} are read")
    if key == "name" and not _SKILL_NAME.fullmatch(value):
        problems.append("name is not lower-case letters and digits in words joined by one hyphen")
    if key == "description" and getattr(node, "style", None) not in {'"', "'"}:
        problems.append("description is not quoted")
    return problems


def _front_matter(data: bytes) -> tuple[dict[str, Node], dict[str, JsonValue], str]:
    """Return the value nodes by key, the values, and the text behind the front matter."""
    block, body = _split(_decode(data).removeprefix(_BOM))
    root, values = _compose("\n" + block)  # an empty line where the fence was: lines count right
    if root is None:
        return {}, {}, body
    if not isinstance(values, dict):
        raise unparsable_at(2, 1, "the front matter is not a mapping")
    return {str(key.value): node for key, node in root.value}, values, body


def _decode(data: bytes) -> str:
    if len(data) > MAX_BYTES:
        raise UnparsableFile(f"larger than {MAX_BYTES // 1024**2} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix(_BOM)
        raise unparsable(before, len(before), "not UTF-8") from None


def _split(text: str) -> tuple[str, str]:
    opening = _FENCE.match(text)
    if opening is None:
        raise unparsable_at(1, 1, "no front matter: the first line is not ---")
    closing = _CLOSING_FENCE.search(text, opening.end())
    if closing is None:
        raise unparsable_at(1, 1, "the front matter has no closing --- line")
    return text[opening.end() : closing.start()], text[closing.end() :]


def _compose(text: str) -> tuple[Node | None, JsonValue]:
    """Return the document as nodes, which know their place and quoting, and as JSON."""
    from ruamel.yaml import YAML  # noqa: PLC0415  (slow to import; most commands read no YAML)
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    yaml = YAML(typ="safe", pure=True)
    try:
        root: Node | None = yaml.compose(text)
    except YAMLError as error:
        raise _located(text, error) from None
    except RecursionError:
        raise UnparsableFile("nested too deeply") from None
    except ValueError:  # a character number that does not exist
        raise UnparsableFile("an escape that is no character") from None
    return root, None if root is None else _Reader(yaml.constructor.construct_object).json(root)


class _Reader:
    """Turns nodes into JSON, counting what aliases multiply."""

    def __init__(self, construct: Callable[[ScalarNode], object]) -> None:
        self._construct = construct
        self._left = MAX_VALUES

    def json(self, node: Node, depth: int = 0) -> JsonValue:
        from ruamel.yaml import nodes  # noqa: PLC0415  (loaded by now)

        self._left -= 1
        if depth > MAX_DEPTH:
            raise _refused(node, f"nested more than {MAX_DEPTH} levels deep, or inside itself")
        if self._left < 0:
            raise _refused(node, f"more than {MAX_VALUES} values, aliases included")
        kind = str(node.tag).removeprefix(_TAG)
        if isinstance(node, nodes.MappingNode) and kind == "map":
            return self._mapping(node, depth + 1)
        if isinstance(node, nodes.SequenceNode) and kind == "seq":
            return [self.json(item, depth + 1) for item in node.value]
        if isinstance(node, nodes.ScalarNode) and kind in _SCALARS:
            return self._scalar(node)
        raise _refused(node, "a tag that has no form in JSON")

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, JsonValue]:
        from ruamel.yaml import nodes  # noqa: PLC0415  (loaded by now)

        own: dict[str, JsonValue] = {}
        merged: dict[str, JsonValue] = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                is_list = isinstance(value, nodes.SequenceNode)
                for source in value.value if is_list else [value]:
                    taken = self.json(source, depth)
                    if not isinstance(taken, dict):
                        raise _refused(source, "only a mapping can be merged")
                    merged = taken | merged
            elif not isinstance(key, nodes.ScalarNode) or key.tag != f"{_TAG}str":
                raise _refused(key, "a key that is not text")
            elif key.value in own:
                raise _refused(key, "a key that is there twice")
            else:
                own[key.value] = self.json(value, depth)
        return merged | own

    def _scalar(self, node: ScalarNode) -> JsonValue:
        try:
            value = self._construct(node)
        except Exception:  # noqa: BLE001  (ruamel lets KeyError and others through)
            raise _refused(node, "a value that does not fit its type") from None
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, dt.date):
            return value.isoformat()
        raise _refused(node, "a value that does not fit its type")


def _refused(node: Node, what: str) -> UnparsableFile:
    return unparsable_at(node.start_mark.line + 1, node.start_mark.column + 1, what)


def _located(text: str, error: Exception) -> UnparsableFile:
    """Say where and what, never with the words of the file: they may be secret."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        what = re.sub(r"['\"].*", "…", str(getattr(error, "problem", None) or "not YAML"))
        return unparsable_at(mark.line + 1, mark.column + 1, what)
    offset = getattr(error, "position", None)
    what = "a character that YAML does not allow"
    return unparsable(text, offset if isinstance(offset, int) else 0, what)
