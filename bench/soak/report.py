"""Shows the figures of a run as tables."""

from collections.abc import Sequence

from bench.measuring.report import table
from bench.soak.judgement import ALLOWANCES, MEMORY_FACTOR, Course, RoleCourse
from bench.soak.load import Answers, LoadFigures
from bench.soak.run import SoakResult
from bench.soak.tables import EXPLANATIONS

_KIB = 1024


def lines(result: SoakResult, found: Sequence[RoleCourse]) -> list[str]:
    load, there = result.load, result.inventory
    killed = ", ".join(f"{victim} {count}" for victim, count in result.kills.items())
    lost, twice = load.submitted - there.names, there.jobs - there.names
    phases = ", ".join(f"{phase} {count}" for phase, count in there.phases.items())
    return [
        f"{load.seconds:.0f} s, kills: {killed or 'none'}; the load client used {load.cpu / load.seconds:.2f} cores",
        "",
        *_requests(load),
        "",
        f"jobs accepted {load.submitted}, present {there.jobs}, lost {lost}, duplicated {twice}; {phases}",
        f"pods {there.pods}, attempts with several pods {there.doubles}, attempts without a pod {there.without_pod}",
        f"objects left in the cluster {there.objects}",
        "",
        *_processes(found),
        "",
        "allowed from the middle to the end, and in the life of a process after its warm-up:",
        *(
            f"{role}: {MEMORY_FACTOR:g} times the memory and {more.memory:.0f} MiB, {more.descriptors} descriptors more"
            for role, more in ALLOWANCES.items()
        ),
        "",
        *_tables(result),
    ]


def _requests(load: LoadFigures) -> list[str]:
    head = ("request", "answered", "rate", "p50 ms", "p99 ms", "retries", "broken", "refused", "answers by status")
    sorts = (("submit", load.submit), ("poll", load.poll), ("delete", load.delete))
    return table(head, [_request(name, answers, load.seconds) for name, answers in sorts])


def _request(name: str, answers: Answers, seconds: float) -> tuple[str, ...]:
    codes = ", ".join(f"{code}: {count}" for code, count in answers.codes.items())
    return (
        name,
        str(answers.done),
        f"{answers.done / seconds:.0f}/s",
        f"{answers.p50 * 1e3:.1f}",
        f"{answers.p99 * 1e3:.1f}",
        *(str(count) for count in (answers.retries, answers.broken, answers.refused)),
        codes,
    )


def _processes(found: Sequence[RoleCourse]) -> list[str]:
    head = (
        *("process", "lives", "MiB start", "middle", "end", "slope/min", "most growth in a life"),
        *("descriptors start", "middle", "end", "slope/min", "most growth in a life", "connections or processes"),
    )
    return table(
        head,
        [
            (
                course.role,
                str(course.lives),
                *_course(course.memory),
                *_course(course.descriptors),
                str(course.connections),
            )
            for course in found
        ],
    )


def _course(course: Course) -> tuple[str, ...]:
    thirds = ("-" if value is None else f"{value:.0f}" for value in (course.start, course.middle, course.end))
    return (*thirds, f"{course.slope:+.1f}", f"{course.growth:+.0f} from {course.growth_base:.0f}")


def _tables(result: SoakResult) -> list[str]:
    jobs = max(1, result.inventory.jobs)
    rows = [
        (
            name,
            str(result.middle[name].rows) if name in result.middle else "-",
            str(size.rows),
            f"{size.bytes / _KIB:.0f}",
            f"{size.bytes / jobs:.0f}",
            str(result.a_day_later[name].rows),
            EXPLANATIONS[name].reason if name in EXPLANATIONS else "unexplained",
        )
        for name, size in sorted(result.end.items())
        if size.rows
    ]
    head = ("table", "rows in the middle", "at the end", "KiB", "bytes per job", "rows a day later", "what bounds it")
    return table(head, rows)
