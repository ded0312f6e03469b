"""Reads and writes YAML as nodes, without interpreting their scalars. Pure.

The gateway reads YAML as kubectl does, which differs from PyYAML: 22:22 is a string, and 08 without quotes is a number.
A manifest that the client changes must therefore keep each scalar as it is written.
"""

import re
import sys
from collections.abc import Iterator
from typing import Final

import yaml

_PLAIN: Final = "plain"  # the tag of a scalar without quotes, such as 2 or yes; it is neither read nor written
_STRING: Final = "tag:yaml.org,2002:str"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


class _Loader(yaml.SafeLoader):
    """Gives all scalars without quotes one tag."""


class _Dumper(yaml.SafeDumper):
    """Writes strings without quotes if their style allows it, also 08 and yes."""


_Loader.yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}
_Dumper.yaml_implicit_resolvers = {}


def compose(text: str) -> yaml.Node:
    """Return the root of a document. An empty document is null.

    Raises:
        YAMLError: it is not YAML.
    """
    return yaml.compose(text, Loader=_Loader) or compose("null")


def serialize(root: yaml.Node) -> str:
    """Return the text of a document. Its comments are lost."""
    for node in _nodes(root):
        if isinstance(node, yaml.CollectionNode):
            node.flow_style = False  # between brackets, PyYAML writes a missing value as ''
        elif node.tag == _PLAIN:
            node.tag = _STRING
        elif isinstance(node, yaml.ScalarNode):
            node.style = '"'
    return yaml.serialize(root, Dumper=_Dumper, allow_unicode=True, width=sys.maxsize)


def string(text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode(_STRING, text, style='"')


def is_null(node: yaml.Node) -> bool:
    return node.tag == _PLAIN and node.value in _NULLS


def field(mapping: yaml.MappingNode, name: str) -> yaml.Node | None:
    """Return the value of a field as the gateway reads it: a merge key (<<) replaces the fields before it."""
    found: yaml.Node | None = None
    for key, value in mapping.value:
        if key.value == name:
            found = value
        elif key.tag == _PLAIN and key.value == "<<":
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in reversed(merged):  # the first one that has the field provides its value
                found = (field(source, name) if isinstance(source, yaml.MappingNode) else None) or found
    return found


def with_field(mapping: yaml.MappingNode, name: str, value: yaml.Node) -> yaml.MappingNode:
    """Return a mapping with another value of a field, which goes last so that no merge key replaces it."""
    others = without_field(mapping, name)
    return yaml.MappingNode(mapping.tag, [*others.value, (string(name), value)])


def without_field(mapping: yaml.MappingNode, name: str) -> yaml.MappingNode:
    """Return a mapping without a field of its own. A merge key may still provide it."""
    return yaml.MappingNode(mapping.tag, [pair for pair in mapping.value if pair[0].value != name])


def _nodes(root: yaml.Node) -> Iterator[yaml.Node]:
    """Yield each node once. Aliases share nodes."""
    seen: set[yaml.Node] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if isinstance(node, yaml.MappingNode):
            waiting += [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
