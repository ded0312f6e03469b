"""The mutants of a module, and the sample of them that `make mutate` tests.

A mutant is known by its function, its line and what the line becomes. Neither the name of its module nor the number of
its line counts, so the sample and the list of equivalent mutants stay the same when code moves.
"""

import ast
import difflib
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

# Each comparison and each arithmetic operator has the replacements that differ least from it. `|` joins types, and
# decorators and the keywords of classes declare, so no test of behaviour says anything about them.
OPERATORS = re.compile(
    r"""core/(AddNot | ReplaceTrueWithFalse | ReplaceFalseWithTrue | ReplaceAndWithOr | ReplaceOrWithAnd
    | ReplaceBreakWithContinue | ReplaceContinueWithBreak | ExceptionReplacer | NumberReplacer | ZeroIterationForLoop
    | ReplaceUnaryOperator_(Delete_Not | Delete_USub)
    | ReplaceComparisonOperator_(Eq_NotEq | NotEq_Eq | Is_IsNot | IsNot_Is | Lt_LtE | LtE_Lt | Gt_GtE | GtE_Gt
                                 | Lt_GtE | LtE_Gt | Gt_LtE | GtE_Lt)
    | ReplaceBinaryOperator_(Add_Sub | Sub_Add | Mul_FloorDiv | Div_Mul | FloorDiv_Mul | Mod_FloorDiv | Pow_Mul))""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Mutant:
    module: Path
    operator: str
    occurrence: int  # of the operator in the module
    function: str  # or "" at module level
    lines: range
    identity: str

    def operation(self) -> Operator:
        return get_operator(self.operator)()


@dataclass(frozen=True)
class Change:
    """What a mutant changes, as equivalent.toml lists it."""

    function: str
    line: str
    mutant: str


def all_mutants(module: Path) -> list[Mutant]:
    source = module.read_text(encoding="utf-8")
    text, tree, declared = source.splitlines(), get_ast(source), list(_declarations(source))
    nodes = list(ast_nodes(tree))
    found, same = [], Counter[str]()
    for operator in sorted(filter(OPERATORS.fullmatch, operator_names())):
        positions = [(node, at) for node in nodes for at in get_operator(operator)().mutation_positions(node)]
        for occurrence, (node, (start, end)) in enumerate(positions):
            if any(first <= start and end <= last for first, last in declared):
                continue
            function = ASTQuery(node).get_definition_name() or ""
            name = f"{function}\n{operator}\n{text[start[0] - 1].strip()}"
            lines = range(start[0], end[0] + 1)
            found.append(Mutant(module, operator, occurrence, function, lines, f"{name}\n{same[name]}"))
            same[name] += 1
    return found


def _declarations(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where decorators and the keywords of classes begin and end."""
    for node in ast.walk(ast.parse(source)):
        declared: list[ast.expr | ast.keyword] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            declared += node.decorator_list
        if isinstance(node, ast.ClassDef):
            declared += node.keywords
        for part in declared:
            yield (part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)


def sample(mutants: list[Mutant], every: int) -> list[Mutant]:
    """Return one of `every` mutants of a module, at least one, as their identities order them by hash."""
    ordered = sorted(mutants, key=lambda mutant: hashlib.sha256(mutant.identity.encode()).digest())
    return ordered[: math.ceil(len(ordered) / every)]


def change(mutant: Mutant) -> Change:
    source = mutant.module.read_text(encoding="utf-8")
    mutated = mutate_code(source, mutant.operation(), mutant.occurrence)
    if mutated is None:
        raise ValueError(f"{mutant.module}: {mutant.operator} has no occurrence {mutant.occurrence}")
    lines = list(difflib.ndiff(source.splitlines(), mutated.splitlines()))
    before = " ".join(line[2:].strip() for line in lines if line.startswith("- "))
    after = " ".join(line[2:].strip() for line in lines if line.startswith("+ "))
    return Change(mutant.function, before, after)
