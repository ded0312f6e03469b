"""The names of the objects of chunks."""

from uuid import UUID

from app.domain.kept_logs.keys import LogKey, chunk_name, job_prefix, place_of_chunk

JOB = UUID("7d0f7b94-3df3-4f36-9b4c-7cbf2e7f8d11")


def test_a_name_has_its_job_and_sorts_by_offset() -> None:
    key = LogKey(JOB, "worker", 3, 1, "main", 2)
    names = [chunk_name("here", key, offset, "n") for offset in (0, 9, 10, 2**40)]
    assert names[1] == f"here/{JOB}/worker/3/1/main/2/0000000000000009-n.zst"
    assert names == sorted(names)
    assert all(name.startswith(job_prefix("here", JOB)) for name in names)
    assert [place_of_chunk(name) for name in names] == [(key, offset) for offset in (0, 9, 10, 2**40)]
    assert place_of_chunk("here/readme.txt") is None
    assert place_of_chunk("here/x/worker/3/1/main/2/0-n.zst") is None
