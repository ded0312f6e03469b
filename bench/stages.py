"""The CPU time of a submission in pure code, by stage, from the bytes of the body to the bytes of the answer.

    python -m bench stages                      this checkout
    python -m bench stages --against ../other   beside another checkout, in alternating rounds

The submissions have different names, and with `--distinct` also different pod templates. A figure is the least of all
rounds, because other processes of the machine make a round slower and never faster.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from uuid import uuid4

from app.api.answers.rendering import job_bytes
from app.base.clock import SystemClock
from app.db.jobs.group_commit import GroupCommit
from app.db.jobs.submit import NewJob
from app.db.objects.submission import Answer, Submitted
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.decoding import decode_json, decode_yaml
from app.domain.planning import Planner
from app.services.submitting.jobs import JobSubmitter, PreparedJob
from app.services.submitting.objects import SubmitRequest
from app.services.submitting.pod_sets import PodSetCheck
from bench.measuring.bodies import NUMBER, encode, generic_job

_ROUNDS: Final = 20
_CALLS: Final = 25  # of each stage in a round
_NAMESPACE: Final = "bench-stages"
_REQUEST: Final = SubmitRequest(namespace=_NAMESPACE, actor=Actor("bench"))
# The stages that make up a submission.
_DECODE: Final = "decode"
_SERVICE: Final = "service, with these two"
_ANSWER: Final = "render the answer"

_In = TypeVar("_In")
_Out = TypeVar("_Out")


class _NoCommit:
    """Replaces the group commit, and accepts every job."""

    async def submit(self, job: NewJob) -> Answer:  # noqa: ARG002  as the group commit has it
        return Submitted()


class _Pipeline:
    """The functions of the program that a submission calls, without HTTP and the database."""

    def __init__(self) -> None:
        self._planner = Planner(installation=str(uuid4()))
        commit = cast(GroupCommit, _NoCommit())
        check = PodSetCheck(cast(Database, None))  # which it asks only for jobs of many tasks
        self._submitter = JobSubmitter(
            commit, self._planner, SystemClock(), lambda: None, random.SystemRandom(), check_plan=check
        )

    async def round(self, bodies: Sequence[bytes]) -> dict[str, float]:
        """Return the CPU seconds of each stage for one submission."""
        stages: dict[str, float] = {}
        documents = cast("list[dict[str, Any]]", _measure(stages, _DECODE, decode_json, bodies))
        # The service includes the next two stages, so it gets documents that these have not had.
        half = len(documents) // 2
        drafts = _measure(stages, "validate, defaults, policy", self._draft, documents[:half])
        _measure(stages, "plan, size of the pods", self._plan, drafts)
        made: list[PreparedJob] = []

        def keep(prepared: PreparedJob) -> bytes:
            made.append(prepared)
            return b""

        began = time.process_time()
        for document in documents[half:]:
            await self._submitter.submit(document, _REQUEST, key=None, render=keep)
        stages[_SERVICE] = (time.process_time() - began) / half
        _measure(stages, _ANSWER, lambda prepared: job_bytes(prepared.accepted, prepared.new.row), made)
        return stages

    def _draft(self, document: dict[str, Any]) -> Any:
        return self._planner.draft(document, _NAMESPACE, self._submitter.suffix)

    def _plan(self, draft: Any) -> object:
        return self._planner.checked_plan(draft.accepted, str(uuid4()))


def _measure(stages: dict[str, float], name: str, work: Callable[[_In], _Out], inputs: Sequence[_In]) -> list[_Out]:
    began = time.process_time()
    results = [work(each) for each in inputs]
    stages[name] = (time.process_time() - began) / len(inputs)
    return results


def _bodies(manifest: dict[str, Any], *, distinct: bool) -> Callable[[int], list[bytes]]:
    """Return a function that makes the bodies of a round. Their names end in numbers that no other round has."""
    manifest["metadata"]["name"] = f"bench-{NUMBER}"
    text = encode(manifest)
    if distinct:
        # Templates of all kinds have containers, and only templates have them.
        text = text.replace(b'"containers":', b'"terminationGracePeriodSeconds":1%b,"containers":' % NUMBER.encode())
    width = len(NUMBER)

    def bodies(number: int) -> list[bytes]:
        numbers = range(2 * _CALLS * number, 2 * _CALLS * (number + 1))
        return [text.replace(NUMBER.encode(), b"%0*d" % (width, value)) for value in numbers]

    return bodies


def _serve(arguments: argparse.Namespace) -> None:
    """Measure a round for each line of the standard input."""
    bodies, pipeline = _bodies(_manifest(arguments.manifest), distinct=arguments.distinct), _Pipeline()
    for line in sys.stdin:
        print(json.dumps(asyncio.run(pipeline.round(bodies(int(line))))), flush=True)


def _manifest(path: Path | None) -> dict[str, Any]:
    return generic_job("") if path is None else cast("dict[str, Any]", decode_yaml(path.read_bytes())[0])


def _compare(arguments: argparse.Namespace) -> None:
    """Measure this checkout and the other one alternately, and print the least figures side by side."""
    here = Path(__file__).parents[1]
    # The other checkout may have no such script, so this one runs with the modules of the other.
    command = [sys.executable, __file__, "--serve", *(["--distinct"] if arguments.distinct else [])]
    if arguments.manifest is not None:
        command += ["--manifest", str(arguments.manifest.absolute())]
    checkouts = [arguments.against.absolute(), here] if arguments.against else [here]
    started = [_start(command, checkout) for checkout in checkouts]
    least: list[dict[str, float]] = [{} for _ in started]
    for number in range(arguments.rounds):
        for process, found in zip(started, least, strict=True):
            for name, seconds in _round(process, number).items():
                found[name] = min(seconds, found.get(name, seconds))
    for process in started:
        process.communicate()
    for found in least:
        found["all"] = sum(found[name] for name in (_DECODE, _SERVICE, _ANSWER))
    print(f"{'us of CPU':28}" + "".join(f"{checkout.name:>12}" for checkout in checkouts))
    for name in least[0]:
        print(f"{name:28}" + "".join(f"{found[name] * 1e6:12.0f}" for found in least))


def _start(command: list[str], checkout: Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def _round(process: "subprocess.Popen[str]", number: int) -> dict[str, float]:
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "it is a pipe"
    print(number, file=process.stdin, flush=True)
    return cast("dict[str, float]", json.loads(process.stdout.readline()))


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench stages", description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout to compare with")
    parser.add_argument("--manifest", type=Path, help="a YAML file with one manifest (default: a GenericJob)")
    parser.add_argument("--distinct", action="store_true", help="give each submission a pod template of its own")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"rounds of {_CALLS} submissions ({_ROUNDS})")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    if parsed.serve:
        _serve(parsed)
    else:
        _compare(parsed)


if __name__ == "__main__":
    main(sys.argv[1:])
