"""Runs the sample and prints the score. The interpreter of build/mutation runs this program: see __main__.py."""

import argparse
import multiprocessing
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cosmic_ray.mutating import use_mutation

from tools.apart import ROOT
from tools.mutation import covering, mutants, running
from tools.mutation.mutants import Change, Mutant

DOMAIN = "app/domain"
EQUIVALENT = Path(__file__).parent / "equivalent.toml"
GOAL = 0.95
EVERY = 30  # about 440 mutants, which take two cores ten minutes
STAGE_SECONDS = 600  # for a loop that does not return to the interpreter, where no test can be ended
# A new interpreter and its imports would take longer than the tests of most mutants.
FORKS = multiprocessing.get_context("forkserver")
REPORTED = 50  # mutants after which the program prints how far it is


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutate")
    parser.add_argument("--every", type=int, default=EVERY, help="test one of so many mutants of each module")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that run tests")
    parser.add_argument("paths", nargs="*", default=[DOMAIN], help="modules or packages to mutate")
    given = parser.parse_args()
    os.chdir(ROOT)
    FORKS.set_forkserver_preload(running.PRELOADED)
    modules = sorted(_modules(given.paths))
    for path in modules:
        if not path.resolve().is_relative_to(ROOT / DOMAIN) or not path.is_file():
            parser.error(f"{path}: give modules or packages of {DOMAIN}, as paths from the top of the repository")
    everything = {path: mutants.all_mutants(path) for path in modules}
    sampled = [mutant for found in everything.values() for mutant in mutants.sample(found, given.every)]
    print(f"{len(sampled)} of {sum(map(len, everything.values()))} mutants in {len(everything)} modules", flush=True)
    changes = {mutant: mutants.change(mutant) for mutant in sampled}
    equivalent = _equivalent_mutants()
    tested = [mutant for mutant in sampled if changes[mutant] not in equivalent]
    with tempfile.TemporaryDirectory(prefix="jobgate-mutation-") as directory:
        survivors = _survivors(tested, Path(directory).resolve(), given.jobs)
        number = 0
        for mutant in survivors:
            _print_survivor(mutant, changes[mutant])
            number += 1
    return _verdict(len(sampled), len(tested), number)


def _modules(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from path.rglob("*.py") if path.is_dir() else [path]


def _equivalent_mutants() -> set[Change]:
    """Return the mutants of equivalent.toml. Leave the program if one of their lines no longer exists."""
    source = {line.strip() for path in Path(DOMAIN).rglob("*.py") for line in path.read_text().splitlines()}
    listed = set()
    for entry in tomllib.loads(EQUIVALENT.read_text()).get("equivalent", []):
        if entry["line"] not in source:
            sys.exit(f"make mutate: app/domain has no line `{entry['line']}`: correct {EQUIVALENT.name}")
        listed.add(Change(entry["function"], entry["line"], entry["mutant"]))
    return listed


def _survivors(tested: list[Mutant], directory: Path, jobs: int) -> Iterator[Mutant]:
    first, *others = (directory / str(number) for number in range(jobs))
    _copy_checkout(first)
    coverage = covering.measure(first)  # also writes the bytecode, which the other trees get too
    for tree in others:
        shutil.copytree(first, tree)
    trees: queue.Queue[Path] = queue.Queue()
    for tree in (first, *others):
        trees.put(tree)

    def survives(mutant: Mutant) -> bool:
        tree = trees.get()
        try:
            return all(_passes(mutant, tree, stage) for stage in coverage.stages(mutant.module, mutant.lines))
        finally:
            trees.put(tree)

    with ThreadPoolExecutor(jobs) as pool:
        for number, (mutant, result) in enumerate(zip(tested, pool.map(survives, tested), strict=True), start=1):
            if result:
                yield mutant
            if number % REPORTED == 0:
                print(f"tested: {number} of {len(tested)}", flush=True)


def _copy_checkout(tree: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(Path.is_file, map(Path, listed.stdout.split("\0"))):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, tree / name)


def _passes(mutant: Mutant, tree: Path, tests: list[str]) -> bool:
    """Return whether the tests pass with the mutant. A mutant that cannot be imported fails them."""
    with use_mutation(tree / mutant.module, mutant.operation(), mutant.occurrence):
        ran = FORKS.Process(target=running.run, args=(tree, tests))
        ran.start()
        ran.join(STAGE_SECONDS)
        ran.kill()
        ran.join()
    return ran.exitcode == 0


def _print_survivor(mutant: Mutant, change: Change) -> None:
    print(f"survived: {mutant.module}:{mutant.lines.start} ({mutant.operator})")
    print(f"  function = {change.function!r}\n  line = {change.line!r}\n  mutant = {change.mutant!r}", flush=True)


def _verdict(sampled: int, tested: int, survived: int) -> int:
    score = 1 - survived / tested if tested else 1.0
    print(f"{sampled} mutants: {tested - survived} killed, {survived} survived, {sampled - tested} equivalent")
    print(f"score: {score:.1%} (goal: {GOAL:.0%})")
    return int(score < GOAL)


if __name__ == "__main__":
    sys.exit(main())
