"""The headers of W3C's trace context: which are accepted, and what is sent on. The cases follow its specification."""

import asyncio

import pytest

from app.base.offload import offload
from app.telemetry import trace_context
from app.telemetry.trace_context import TraceContext, continue_trace, current, from_headers, parse, set_current

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
VALID = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("value", "sent_on"),
    [
        (VALID, VALID),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f" \t{VALID} ", VALID),
        (f"00-{TRACE}-{SPAN}-03", f"00-{TRACE}-{SPAN}-03"),  # level 2: a random trace id
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{SPAN}-03"),  # flags without a meaning are not sent on
        (f"00-{TRACE}-{SPAN}-fc", f"00-{TRACE}-{SPAN}-00"),
        (f"01-{TRACE}-{SPAN}-01", VALID),  # a later version is sent on as this one
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like", VALID),
        (f"cc-{TRACE}-{SPAN}-01-", VALID),
        (f"00-{TRACE}-{'0' * 15}1-01", f"00-{TRACE}-{'0' * 15}1-01"),
    ],
)
def test_a_valid_traceparent_is_accepted(value: str, sent_on: str) -> None:
    found = parse(value)
    assert found is not None
    assert found.traceparent == sent_on
    assert found.is_sampled is (sent_on[-1] in "13")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "garbage",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01.",
        f"cc-{TRACE}-{SPAN}-01.what-the-future-will-not-be-like",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN.upper()}-01",
        f"00-{TRACE}-{SPAN}-0A",
        f"CC-{TRACE}-{SPAN}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}0-{SPAN}-01",
        f"00-{TRACE}-{SPAN[:-1]}-01",
        f"00-{TRACE}-{SPAN}0-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-001",
        f"00-{TRACE}-{SPAN}",
        f"0-{TRACE}-{SPAN}-01",
        f"000-{TRACE}-{SPAN}-01",
        f"00_{TRACE}_{SPAN}_01",
        f"00-{TRACE[:-1]}.-{SPAN}-01",
        f"00-{TRACE[:-1]}\u0661-{SPAN}-01",  # a digit, but not of hexadecimal
        f"{VALID}\n",
        f"00 -{TRACE}-{SPAN}-01",
        f"{VALID},{VALID}",
    ],
)
def test_an_invalid_traceparent_is_ignored_with_its_state(value: str) -> None:
    assert parse(value, "vendor=1") is None


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("", ""),
        ("foo=1", "foo=1"),
        ("foo=1,bar=2", "foo=1,bar=2"),
        (" foo=1 \t,\t bar=2 ", "foo=1,bar=2"),
        ("foo=1,", "foo=1"),
        (",,foo=1,,bar=2", "foo=1,bar=2"),
        ("foo=a b", "foo=a b"),
        ("foo=1,foo=2", "foo=1"),
        ("fw529a3039@dt=FfffffffAAAA;1", "fw529a3039@dt=FfffffffAAAA;1"),
        ("0t@system=1", "0t@system=1"),
        ("a-z_0*9/=1", "a-z_0*9/=1"),
        (f"{'k' * 256}=1", f"{'k' * 256}=1"),
        (f"{'t' * 241}@{'s' * 14}=1", f"{'t' * 241}@{'s' * 14}=1"),
        (f"k={'v' * 256}", f"k={'v' * 256}"),
        (",".join(f"k{n}=1" for n in range(32)), ",".join(f"k{n}=1" for n in range(32))),
        (",".join(f"k{n}=1" for n in range(33)), ""),
        ("foo", ""),
        ("foo=", ""),
        ("=1", ""),
        ("foo=1=2", ""),
        ("FOO=1", ""),
        ("0foo=1", ""),
        ("foo@=1,bar=2", ""),
        ("@foo=1", ""),
        ("foo@@bar=1", ""),
        ("foo bar=1", ""),
        ("foo =1", ""),
        ("foo=\u00e9", ""),
        ("foo=\x01", ""),
        (f"{'k' * 257}=1", ""),
        (f"{'t' * 242}@s=1", ""),
        (f"t@{'s' * 15}=1", ""),
        (f"k={'v' * 257}", ""),
        # Longer than what is sent on: large members go first, then the last ones.
        (f"a=1,large={'v' * 250},b=2,other={'w' * 250},c=3", f"a=1,large={'v' * 250},b=2,c=3"),
        (",".join(f"k{n}={'v' * 96}" for n in range(6)), ",".join(f"k{n}={'v' * 96}" for n in range(5))),
    ],
)
def test_an_invalid_tracestate_is_ignored_alone(value: str, kept: str) -> None:
    found = parse(VALID, value)
    assert found is not None
    assert found.state == kept
    assert found.headers() == {"traceparent": VALID} | ({"tracestate": kept} if kept else {})


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ([], None),
        ([(b"tracestate", b"foo=1")], None),
        ([(b"traceparent", VALID.encode())], TraceContext(TRACE, SPAN, 1)),
        ([(b"traceparent", VALID.encode()), (b"tracestate", b"foo=1")], TraceContext(TRACE, SPAN, 1, "foo=1")),
        (
            [(b"tracestate", b"a=1"), (b"traceparent", VALID.encode()), (b"tracestate", b"b=2")],
            TraceContext(TRACE, SPAN, 1, "a=1,b=2"),
        ),
        ([(b"traceparent", VALID.encode()), (b"traceparent", VALID.encode())], None),
        ([(b"traceparent", b"00-\xff")], None),
    ],
)
def test_the_headers_of_a_request_are_read(headers: list[tuple[bytes, bytes]], found: TraceContext | None) -> None:
    assert from_headers(headers) == found


async def test_the_context_reaches_tasks_and_threads_and_ends_with_its_block() -> None:
    trace = TraceContext(TRACE, SPAN, 1)
    with continue_trace(trace):
        async with asyncio.TaskGroup() as group:
            of_task = group.create_task(_current())
        assert (of_task.result(), await offload(current)) == (trace, trace)
        with continue_trace(None):
            assert current() is None
        assert current() is trace
    assert current() is None


async def test_a_context_that_is_set_ends_with_its_task() -> None:
    async def work() -> None:
        set_current(TraceContext(TRACE, SPAN))
        assert current() is not None

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
    assert trace_context.current() is None


async def _current() -> TraceContext | None:
    return current()
