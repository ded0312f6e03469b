"""Which tests of the domain run which lines of it."""

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

TESTS = Path("tests/domain")
CONFIGURATION = "[run]\nsource = app/domain\nparallel = true\ndata_file = {data}\n"
# The tests of the domain use none of the other plugins, whose imports take most of the time that a process starts.
OPTIONS = (
    *("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:rerunfailures", "--noconftest"),
    *("-p", "tests.support.plugins.properties", "-p", "tests.support.plugins.golden"),
    *("--assert=plain", "--hypothesis-profile=mutation"),
)
NEAREST = 3  # test modules that a mutant meets first: together they kill most mutants


@dataclass(frozen=True)
class Coverage:
    # Of each line of a module the tests that run it, as `path::function`. Lines that run at import have none.
    tests: dict[Path, dict[int, frozenset[str]]]

    def stages(self, module: Path, lines: Sequence[int]) -> list[list[str]]:
        """Return the tests that a mutant meets first, and the others.

        Lines that run at import, and lines that no test runs, meet all test modules that cover a part of the module.
        """
        of_module = self.tests.get(module, {})
        covered = Counter(_path(test) for tests in of_module.values() for test in tests)
        nearest = [path for path, _ in covered.most_common(NEAREST)]
        tests = {test for line in lines for test in of_module.get(line, ())} or set(covered) or {TESTS.as_posix()}
        first = {test for test in tests if _path(test) in nearest}
        return [sorted(stage) for stage in (first, tests - first) if stage]


def _path(test: str) -> str:
    return test.partition("::")[0]


def measure(tree: Path) -> Coverage:
    """Run the tests of the domain in `tree`, in two processes, and return which lines they run."""
    data, configuration = tree / ".mutation-coverage", tree / ".mutation-coveragerc"
    configuration.write_text(CONFIGURATION.format(data=data))
    modules = sorted(path.relative_to(tree).as_posix() for path in (tree / TESTS).rglob("test_*.py"))
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={configuration}", "-m", "pytest", *OPTIONS]
    command += ["-p", "tools.mutation.contexts"]

    def run(part: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *part], cwd=tree, check=False, capture_output=True, text=True)

    with ThreadPoolExecutor() as pool:
        for ran in pool.map(run, (modules[::2], modules[1::2])):
            if ran.returncode:
                sys.exit(f"make mutate: the tests of the domain fail without a mutation:\n{ran.stdout[-4000:]}")
    tests: dict[Path, dict[int, frozenset[str]]] = defaultdict(dict)
    for part in tree.glob(f"{data.name}.*"):
        _add(tests, CoverageData(str(part)), tree)
    _require_tests(tree, {test for lines in tests.values() for found in lines.values() for test in found})
    return Coverage(tests)


def _require_tests(tree: Path, tests: set[str]) -> None:
    """Leave the program if pytest does not find the tests: each mutant that they cover would count as killed."""
    arguments = tree / ".mutation-tests"
    arguments.write_text("\n".join(sorted(tests)))
    command = [sys.executable, "-m", "pytest", *OPTIONS, "--collect-only", f"@{arguments}"]
    found = subprocess.run(command, cwd=tree, check=False, capture_output=True, text=True)
    if found.returncode:
        sys.exit(f"make mutate: pytest does not find the tests that cover the domain:\n{found.stdout[-4000:]}")


def _add(tests: dict[Path, dict[int, frozenset[str]]], data: CoverageData, tree: Path) -> None:
    data.read()
    for name in data.measured_files():
        of_module = tests[Path(name).relative_to(tree)]
        for line, contexts in data.contexts_by_lineno(name).items():
            of_module[line] = of_module.get(line, frozenset()) | {context for context in contexts if context}
