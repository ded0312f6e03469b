"""The command line of `make sdks`."""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tools.sdks import scenario
from tools.sdks.building import ROOT, Failed, Skipped, Workshop, build, find_language, install, require_programs
from tools.sdks.catalog import SDKS, Sdk


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make sdks", description="Generate, compile and run the clients.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(s.name for s in SDKS)}")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "sdks", help="the directory of the projects")
    parser.add_argument("--no-scenario", action="store_true", help="compile only")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - {sdk.name for sdk in SDKS}:
        parser.error(f"no SDK has the name {', '.join(sorted(unknown))}")
    chosen = [sdk for sdk in SDKS if not given.names or sdk.name in given.names]
    workshop = Workshop(directory=given.build.resolve())
    results = Results()
    build_all(workshop, chosen, results)
    if results.passed and not given.no_scenario:
        run_all(workshop, results)
    _print(f"{len(results.passed)} passed, {len(results.failed)} failed, {len(results.skipped)} skipped")
    return 1 if results.failed else 0


@dataclass(slots=True)
class Results:
    """The clients, grouped by the result of their steps so far."""

    passed: list[Sdk] = field(default_factory=list)
    failed: list[Sdk] = field(default_factory=list)
    skipped: list[Sdk] = field(default_factory=list)


def build_all(workshop: Workshop, sdks: Iterable[Sdk], results: Results) -> None:
    for sdk in sdks:
        started = time.monotonic()
        try:
            require_programs(sdk.programs)
            install(workshop, find_language(sdk.language))
            build(workshop, sdk)
        except Skipped as skipped:
            results.skipped.append(sdk)
            _print(f"skipped {sdk.name} ({sdk.language}): {skipped}")
        except Failed as failed:
            results.failed.append(sdk)
            _print(f"FAILED {sdk.name} ({sdk.language}): {failed}")
        else:
            results.passed.append(sdk)
            _print(f"built {sdk.name} ({sdk.language}) in {time.monotonic() - started:.0f} s")


def run_all(workshop: Workshop, results: Results) -> None:
    """Run the scenario with each client that was built. All use the same gateway."""
    with tempfile.TemporaryDirectory(prefix="jobgate-sdks-") as name, scenario.gateway(Path(name)) as url:
        for sdk in list(results.passed):
            started = time.monotonic()
            try:
                scenario.run(workshop, sdk, url, Path(name) / sdk.name)
            except Failed as failed:
                results.passed.remove(sdk)
                results.failed.append(sdk)
                _print(f"FAILED scenario of {sdk.name} ({sdk.language}): {failed}")
            else:
                _print(f"ran the scenario with {sdk.name} ({sdk.language}) in {time.monotonic() - started:.0f} s")


def _print(text: str) -> None:
    print(f"sdks: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
