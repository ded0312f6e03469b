"""docs/kinds/mx-job.md matches the kind: codes and their order, phases and states."""

import re
from pathlib import Path

from app.domain.kinds.mx_job import validation
from app.domain.kinds.mx_job.native import native_phase, native_state
from app.domain.kinds.mx_job.spec import PS_ROOT_PORT
from app.domain.status.records import JobStatus
from app.domain.vocabulary import JobPhase, Reason
from tests.docs.test_docs import read, rows
from tests.domain.kinds.mx_job.test_validation import OURS, UPSTREAM

PAGE = "docs/kinds/mx-job.md"
# Codes of every kind for the shape of a manifest.
OF_ALL_KINDS = {"InvalidType", "UnknownField", "TooMany"}


def test_every_code_is_documented() -> None:
    documented = [cells[0] for cells in rows(read(PAGE), "What is refused") if cells[0] != "code"]
    cases = [code for *_, code, _ in UPSTREAM] + [code for *_, code in OURS]
    assert set(documented) == set(cases) - OF_ALL_KINDS
    source = Path(validation.__file__).read_text()
    assert set(re.findall(r'"([A-Z]\w+)", (?:said|detail|f?"|f?\')', source)) - OF_ALL_KINDS <= set(documented)


def test_upstreams_codes_are_documented_in_its_order() -> None:
    documented = [cells[0] for cells in rows(read(PAGE), "What is refused") if cells[0] != "code"]
    cases = list(dict.fromkeys(code for *_, code, _ in UPSTREAM))
    assert documented[: len(cases)] == cases


def test_every_phase_is_documented() -> None:
    documented: dict[str, tuple[str, str]] = {}
    for uniform, native, state in list(rows(read(PAGE), "Native status"))[1:9]:
        documented |= dict.fromkeys(re.findall(r"\w+", re.sub(r"\(.*?\)", "", uniform)), (native, state))
    for phase in JobPhase:
        status = JobStatus(phase=phase, reason=Reason.REFUSED_BY_CLUSTER)
        assert documented[str(phase)] == (native_phase(status) or "(empty)", native_state(status)), phase


def test_the_default_port_is_documented() -> None:
    assert f"| {PS_ROOT_PORT} |" in read(PAGE)
