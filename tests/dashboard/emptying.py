"""Removes what a test has stored, so that each run of each test begins with an empty gateway and an empty cluster."""

from functools import partial
from typing import Final

from tests.e2e.user import User
from tests.support.waiting import until

# A sample job is deleted before the set that it refers to.
RESOURCES: Final = ("samplejobs", "samplesets", "jobs")


async def delete_all(user: User) -> None:
    """Delete all objects that the user can list, and wait until nothing of them is left in the cluster."""
    for resource in RESOURCES:
        params = {"view": "summary", "pageSize": "500"}
        listed = await user.http.get(f"/api/v1/{resource}", params=params, headers=user.headers)
        assert listed.status_code == 200, listed.text
        paths = {f"/api/v1/namespaces/{item['namespace']}/{resource}/{item['name']}" for item in listed.json()["items"]}
        # The first requests start all deletions, so that they take as long as the longest of them.
        left = [path for path in sorted(paths) if not await _is_deleted(user, path)]
        for path in left:
            await until(partial(_is_deleted, user, path), what=f"nothing is left of {path}", within=120)


async def _is_deleted(user: User, path: str) -> bool:
    """Request a deletion, and return whether no object of it is left."""
    answer = await user.http.delete(path, headers=user.headers)
    assert answer.status_code in (200, 202), f"{path}: {answer.status_code} {answer.text}"
    return answer.status_code == 200
