"""The error answers of the server itself."""

import json
from http import HTTPStatus

import pytest

from app.http_server.error_answers import ErrorAnswer, RefusalReason


@pytest.mark.parametrize("reason", RefusalReason)
def test_each_answer_is_a_problem_that_says_what_is_accepted(reason: RefusalReason) -> None:
    head, _, body = ErrorAnswer(reason, 4711).encode([(b"server", b"x")]).partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    problem = json.loads(body)
    status = HTTPStatus(problem["status"])
    assert head.startswith(f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode())
    assert (fields["connection"], fields["content-length"], fields["server"]) == ("close", str(len(body)), "x")
    assert ("retry-after" in fields) == (status is HTTPStatus.SERVICE_UNAVAILABLE)
    assert problem["type"] == f"urn:jobgate:problem:{problem['code']}"
    accepted = [error["accepted"] for error in problem.get("errors", [])] or [problem["detail"]]
    assert all(accepted)
    if reason not in (RefusalReason.MALFORMED, RefusalReason.VERSION, RefusalReason.HOST, RefusalReason.CONNECT):
        assert "4711" in accepted[0]
