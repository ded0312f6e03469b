"""Checks of single jobs: history, phase, conditions, scale records, replicas, attempts and names."""

from typing import Final

from app.db.verification.check import JOBS, Invariant, job_check, numbering
from app.domain.kept_logs.records import GapReason

_TERMINAL: Final = "('Succeeded', 'Failed', 'TimedOut', 'Cancelled')"
_RANK: Final = "format('%s-%s', r.task, r.rank)"

JOB_CHECKS: Final[tuple[Invariant, ...]] = (
    numbering(
        "history-numbers",
        "a change and its history row share a transaction, so the history of a job has no gap",
        JOBS,
        table="jobs",
        rows="status_history",
        key="job_uid",
        count="history_count",
    ),
    job_check(
        "history-phase",
        "a phase change and its history row share a transaction, so the last row has the phase of the job",
        "format('the phase is %s, and the last row of the history has %s', j.phase, l.phase)",
        """
        FROM jobs AS j CROSS JOIN LATERAL (
            SELECT phase FROM status_history WHERE job_uid = j.uid AND task IS NULL ORDER BY seq DESC LIMIT 1
        ) AS l WHERE j.uid = ANY($1) AND l.phase <> j.phase
        """,
    ),
    job_check(
        "terminal-phases",
        "a job that has ended never changes its phase",
        "format('the history has %s in row %s, and %s after it', min(e.phase), min(e.seq), min(l.phase))",
        f"""
        FROM jobs AS j
        JOIN status_history AS e ON e.job_uid = j.uid AND e.task IS NULL AND e.phase IN {_TERMINAL}
        JOIN status_history AS l ON l.job_uid = j.uid AND l.task IS NULL AND l.seq > e.seq AND l.phase <> e.phase
        WHERE j.uid = ANY($1) GROUP BY j.uid
        """,
    ),
    job_check(
        "end-times",
        "a job has the time of its end if its phase is terminal, and its objects go after its end",
        "format('the phase is %s, finished_at %s, gone_at %s', j.phase, j.finished_at, j.gone_at)",
        f"""
        FROM jobs AS j WHERE j.uid = ANY($1)
        AND ((j.phase IN {_TERMINAL}) <> (j.finished_at IS NOT NULL) OR j.gone_at IS NOT NULL AND j.finished_at IS NULL)
        """,
    ),
    job_check(
        "generations",
        "the controller observes only generations that are stored",
        "format('observed_generation is %s, generation %s', j.observed_generation, j.generation)",
        "FROM jobs AS j WHERE j.uid = ANY($1) AND j.observed_generation > j.generation",
    ),
    job_check(
        "conditions",
        "the conditions of a job follow from its phase: it has Completed and Failed from its end on",
        "format('the phase is %s, and the condition %s is %s', j.phase, w.type, COALESCE(c.status, 'missing'))",
        f"""
        FROM jobs AS j CROSS JOIN LATERAL (VALUES
            ('Completed', j.phase = 'Succeeded', j.phase IN {_TERMINAL}, true),
            ('Failed', j.phase IN ('Failed', 'TimedOut'), j.phase IN {_TERMINAL}, true),
            ('Running', j.phase = 'Running', j.phase = 'Running', false),
            ('Paused', j.phase = 'Paused', j.phase = 'Paused', false)
        ) AS w (type, holds, is_needed, only_then)
        LEFT JOIN conditions AS c ON c.job_uid = j.uid AND c.type = w.type
        WHERE j.uid = ANY($1) AND CASE WHEN c.status IS NULL THEN w.is_needed
            ELSE c.status <> initcap(w.holds::text) OR w.only_then AND NOT w.is_needed END
        """,
    ),
    numbering(
        "scale-records",
        "a request for another size and its record share a transaction",
        JOBS,
        table="jobs",
        rows="scale_records",
        key="job_uid",
        count="scale_count",
    ),
    job_check(
        "aggregate",
        "the counts of the aggregate add up to the desired number of replicas, which the first reconcile stores",
        "format('the aggregate counts %s replicas, and there are %s', a.counted, r.stored)",
        """
        FROM jobs AS j
        CROSS JOIN LATERAL (
            SELECT sum(value::bigint) AS counted FROM jsonb_each_text(j.status -> 'aggregate')
        ) AS a
        CROSS JOIN LATERAL (
            SELECT count(*) AS stored FROM replicas WHERE job_uid = j.uid AND NOT leaving
        ) AS r
        WHERE j.uid = ANY($1) AND a.counted <> r.stored AND j.observed_generation > 0
        """,
    ),
    job_check(
        "attempt-numbers",
        "each replacement of a pod is a further attempt, so the attempts before the current one are all stored",
        f"format('%s is at attempt %s; %s are stored, the last is %s', {_RANK}, r.attempt, count(*), max(a.attempt))",
        """
        FROM jobs AS j JOIN replicas AS r ON r.job_uid = j.uid
        LEFT JOIN attempts AS a ON (a.job_uid, a.task, a.rank) = (r.job_uid, r.task, r.rank)
        WHERE j.uid = ANY($1) GROUP BY j.uid, r.task, r.rank, r.attempt
        HAVING max(a.attempt) > r.attempt OR count(*) FILTER (WHERE a.attempt < r.attempt) <> r.attempt - 1
        """,
    ),
    job_check(
        "one-pod",
        "each attempt has at most one pod uid, ever, and no two attempts have the same",
        "format('%s-%s, attempt %s: the pod %s, one of %s of this attempt, is that of %s attempts',"
        " r.task, r.rank, r.attempt, r.pod_uid, r.pods, r.attempts)",
        """
        FROM jobs AS j JOIN (
            SELECT job_uid, task, rank, attempt, pod_uid,
                count(*) OVER (PARTITION BY job_uid, task, rank, attempt) AS pods,
                count(*) OVER (PARTITION BY job_uid, pod_uid) AS attempts
            FROM (
                SELECT job_uid, task, rank, attempt, pod_uid FROM attempts WHERE job_uid = ANY($1)
                UNION SELECT job_uid, task, rank, attempt, pod_uid FROM replicas WHERE job_uid = ANY($1)
            ) AS stored WHERE pod_uid IS NOT NULL
        ) AS r ON r.job_uid = j.uid
        WHERE r.pods > 1 OR r.attempts > 1
        """,
    ),
    job_check(
        "evidence",
        "the evidence of an attempt is stored, or known to be unavailable, before its pod is replaced",
        f"format('%s, attempt %s: %s, with the reason %s', {_RANK}, a.attempt, a.evidence, a.evidence_reason)",
        """
        FROM jobs AS j JOIN replicas AS r ON r.job_uid = j.uid
        JOIN attempts AS a ON (a.job_uid, a.task, a.rank) = (r.job_uid, r.task, r.rank) AND a.attempt < r.attempt
        WHERE j.uid = ANY($1) AND (a.evidence NOT IN ('Captured', 'Unavailable')
            OR a.evidence = 'Unavailable' AND a.evidence_reason IS NULL)
        """,
    ),
    job_check(
        "evidence-of-attempts",
        "a stored log or Event belongs to a stored attempt",
        "format('%s-%s, attempt %s: there is no such attempt', e.task, e.rank, e.attempt)",
        """
        FROM jobs AS j JOIN (
            SELECT job_uid, task, rank, attempt FROM attempt_logs WHERE job_uid = ANY($1)
            UNION SELECT job_uid, task, rank, attempt FROM attempt_events WHERE job_uid = ANY($1)
        ) AS e ON e.job_uid = j.uid
        WHERE NOT EXISTS (
            SELECT FROM attempts AS a
            WHERE (a.job_uid, a.task, a.rank, a.attempt) = (e.job_uid, e.task, e.rank, e.attempt)
        )
        """,
    ),
    job_check(
        "kept-logs",
        "the chunks of a whole log follow each other since its begin or a redaction, and its row counts what they have",
        "format('%s-%s, attempt %s, %s, run %s: %s bytes and %s lines, and its chunks have %s and %s, and end at %s',"
        " k.task, k.rank, k.attempt, k.container, k.run, k.text_bytes, k.lines, c.bytes, c.lines, c.until)",
        f"""
        FROM jobs AS j JOIN kept_logs AS k ON k.job_uid = j.uid
        CROSS JOIN LATERAL (
            SELECT COALESCE(sum(length), 0) AS bytes, COALESCE(sum(lines), 0) AS lines,
                COALESCE(max(start + length), 0) AS until,
                min(start) FILTER (WHERE gap IS NULL) AS start, min(first_line) FILTER (WHERE gap IS NULL) AS line,
                COALESCE(bool_or(gap = '{GapReason.REDACTED}'), false) AS is_redacted
            FROM log_chunks AS p WHERE (p.job_uid, p.task, p.rank, p.attempt, p.container, p.run)
                = (k.job_uid, k.task, k.rank, k.attempt, k.container, k.run)
        ) AS c
        CROSS JOIN LATERAL (
            SELECT CASE WHEN c.is_redacted THEN COALESCE(c.start, k.text_bytes) ELSE 0 END AS bytes,
                CASE WHEN c.is_redacted THEN COALESCE(c.line, k.lines) ELSE 0 END AS lines
        ) AS r
        WHERE j.uid = ANY($1) AND ((k.text_bytes, k.lines) <> (r.bytes + c.bytes, r.lines + c.lines)
            OR k.text_bytes <> GREATEST(r.bytes, c.until))
        """,  # noqa: S608  a constant
    ),
    job_check(
        "names-of-jobs",
        "a live job has its names; one that has ended has released them, and none is left when its objects are gone",
        "format('the phase is %s, gone_at %s: %s names, %s of them released', j.phase, j.gone_at, n.held, n.released)",
        f"""
        FROM jobs AS j CROSS JOIN LATERAL (
            SELECT count(*) AS held, count(*) FILTER (WHERE released) AS released FROM names WHERE job_uid = j.uid
        ) AS n
        WHERE j.uid = ANY($1) AND CASE
            WHEN j.gone_at IS NOT NULL THEN n.held > 0
            WHEN j.phase IN {_TERMINAL} THEN n.held <> n.released
            ELSE n.held = 0 OR n.released > 0 END
        """,  # noqa: S608  constants
    ),
)
