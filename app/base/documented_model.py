"""Models whose fields are described by the strings below them, in JSON schemas.

Pydantic's own setting for this, `use_attribute_docstrings`, reads the source of each model when its class is made. That
would take an eighth of the time of a start. These models read it when a schema is made, which few processes ever do.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import override

# More than there are modules with models.
_MODULES: Final = 128


class DocumentedModel(BaseModel):
    """A model whose fields are described by the strings below them. A description in `Field` has precedence."""

    @classmethod
    @override
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> JsonSchemaValue:
        found = handler(schema)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for name, text in _texts(cls).items():
            field = cls.model_fields[name]
            shown = properties.get(name, properties.get(field.serialization_alias or field.alias or name))
            if shown is not None:
                shown.setdefault("description", text)
        return found


def _texts(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the strings of the fields by name. That of a field is below its last definition."""
    found = {}
    for name in model.model_fields:
        owner = next((base for base in model.__mro__ if name in inspect.get_annotations(base)), model)
        if text := _of_module(owner.__module__).get(owner.__qualname__, {}).get(name):
            found[name] = text
    return found


@lru_cache(maxsize=_MODULES)
def _of_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the strings below the attributes of all classes of a module, by the qualified name of the class."""
    try:
        source = inspect.getsource(sys.modules[name])
    except (OSError, TypeError):  # a module without source has no strings
        return {}
    return dict(_classes(ast.parse(source), ""))


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            name = f"{prefix}{child.name}"
            yield name, dict(_attributes(child))
            yield from _classes(child, f"{name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(child, f"{prefix}{child.name}.<locals>.")
        else:
            yield from _classes(child, prefix)


def _attributes(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for definition, below in pairwise(node.body):
        match definition, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
