"""A database in which every invariant holds, with an object of each sort.

The controller has not seen the job WAITING.
"""

from typing import Any
from uuid import UUID

RUNNING = UUID("00000000-0000-4000-8000-000000000001")
ENDED = UUID("00000000-0000-4000-8000-000000000002")
WAITING = UUID("00000000-0000-4000-8000-000000000003")
SAMPLE = UUID("00000000-0000-4000-8000-000000000004")

_WORLD = f"""
INSERT INTO installation (id, key, created_at) VALUES (gen_random_uuid(), 'key', now());

INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                  quiet, history_count, scale_count, planned_pods, status, started_at, finished_at,
                  observed_generation, version)
SELECT uid::uuid, 'team', name, 'GenericJob', 'v1', '{{}}', now(), 'me', phase, '', '', quiet, history, scales, pods,
       status::jsonb, now(), finished, observed, 3
FROM (VALUES
    ('{RUNNING}', 'running', 'Running', false, 3, 1, 2, '{{"aggregate": {{"Running": 2}}}}', NULL::timestamptz, 1),
    ('{ENDED}', 'ended', 'Succeeded', true, 2, 0, 1, '{{"aggregate": {{"Succeeded": 1}}}}', now(), 1),
    ('{WAITING}', 'waiting', 'Queued', false, 1, 0, 0, '{{"aggregate": {{"Creating": 1}}}}', NULL, 0)
) AS j (uid, name, phase, quiet, history, scales, pods, status, finished, observed);

INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor, task, rank, attempt) VALUES
    ('{RUNNING}', 1, now(), 'Queued', '', '', 'me', NULL, NULL, NULL),
    ('{RUNNING}', 2, now(), 'Running', '', '', 'controller', NULL, NULL, NULL),
    ('{RUNNING}', 3, now(), 'Running', 'Restarting', '', 'controller', 'worker', 0, 1),
    ('{ENDED}', 1, now(), 'Queued', '', '', 'me', NULL, NULL, NULL),
    ('{ENDED}', 2, now(), 'Succeeded', '', '', 'controller', NULL, NULL, NULL),
    ('{WAITING}', 1, now(), 'Queued', '', '', 'me', NULL, NULL, NULL);

INSERT INTO conditions (job_uid, type, position, status, reason, message, last_transition_at, observed_generation)
VALUES
    ('{RUNNING}', 'Running', 0, 'True', '', '', now(), 1),
    ('{ENDED}', 'Running', 0, 'False', '', '', now(), 1),
    ('{ENDED}', 'Completed', 1, 'True', '', '', now(), 1),
    ('{ENDED}', 'Failed', 2, 'False', '', '', now(), 1);

INSERT INTO scale_records (job_uid, seq, task, from_replicas, to_replicas, actor, reason, requested_at)
VALUES ('{RUNNING}', 1, 'worker', 1, 2, 'me', '', now());

INSERT INTO replicas (job_uid, task, rank, attempt, pod_name, pod_uid, phase, outcome, evidence, restarts, disruptions)
VALUES
    ('{RUNNING}', 'worker', 0, 2, 'running-worker-0', 'pod-2', 'Running', NULL, 'None', 1, 0),
    ('{RUNNING}', 'worker', 1, 1, 'running-worker-1', 'pod-3', 'Running', NULL, 'None', 0, 0),
    ('{ENDED}', 'worker', 0, 1, 'ended-worker-0', 'pod-4', 'Succeeded', 'Succeeded', 'Captured', 0, 0);

INSERT INTO attempts (job_uid, task, rank, attempt, pod_uid, phase, outcome, evidence) VALUES
    ('{RUNNING}', 'worker', 0, 1, 'pod-1', 'Failed', 'Failed', 'Captured'),
    ('{ENDED}', 'worker', 0, 1, 'pod-4', 'Succeeded', 'Succeeded', 'Captured');

INSERT INTO attempt_logs (job_uid, task, rank, attempt, container, tail)
VALUES ('{RUNNING}', 'worker', 0, 1, 'main', 'last words');
INSERT INTO attempt_events (job_uid, task, rank, attempt) VALUES ('{RUNNING}', 'worker', 0, 1);

INSERT INTO kept_logs (job_uid, task, rank, attempt, container, run, namespace, state, text_bytes, lines, updated_at)
VALUES ('{RUNNING}', 'worker', 0, 1, 'main', 0, 'team', 'complete', 30, 3, now());
INSERT INTO log_chunks (job_uid, task, rank, attempt, container, run, start, length, first_line, lines, stored_bytes)
VALUES
    ('{RUNNING}', 'worker', 0, 1, 'main', 0, 0, 20, 0, 2, 9),
    ('{RUNNING}', 'worker', 0, 1, 'main', 0, 20, 10, 2, 1, 9);

INSERT INTO names (job_uid, namespace, kind, name, count, released) VALUES
    ('{RUNNING}', 'team', 'job', 'running', 1, false),
    ('{RUNNING}', 'team', 'pod', 'running-worker-0', 2, false),
    ('{ENDED}', 'team', 'job', 'ended', 1, true),
    ('{WAITING}', 'team', 'job', 'waiting', 1, false);

INSERT INTO planned_pods (namespace, pods) VALUES ('team', 3), ('team', -1);
INSERT INTO room_waits (job_uid, namespace, priority, created_at, pods) VALUES ('{WAITING}', 'team', 0, now(), 1);

INSERT INTO samples (uid, kind, namespace, name, api_version, manifest, set_name, created_at, created_by, phase,
                     reason, message, history_count, event_count)
VALUES ('{SAMPLE}', 'SampleSet', 'team', 'set', 'v1', '{{}}', 'set', now(), 'me', '', '', '', 1, 1);
INSERT INTO sample_history (uid, seq, at, phase, reason, message, actor)
VALUES ('{SAMPLE}', 1, now(), '', '', '', 'me');
INSERT INTO sample_events (uid, seq, at, type, reason, message) VALUES ('{SAMPLE}', 1, now(), 'Normal', '', '');

INSERT INTO job_events (seq, at, type, namespace, job_uid, version, resource)
SELECT seq, now(), 'status', 'team', uid::uuid, 1, resource
FROM (VALUES
    (8, '{RUNNING}', 'jobs'), (9, '{ENDED}', 'jobs'), (10, '{WAITING}', 'jobs'), (11, '{SAMPLE}', 'samplesets')
) AS e (seq, uid, resource);
UPDATE feed SET first = 8, last = 11;

INSERT INTO idempotency_keys (scope, key, fingerprint, job_uid, answer, created_at) VALUES
    ('team', 'one', '', '{RUNNING}', '', now()), ('team', 'two', '', '{SAMPLE}', '', now());
"""


async def create_world(connection: Any) -> None:
    """Write the objects into an empty database."""
    await connection.execute(_WORLD)
