"""The fixtures keep what they promise: every test has a database of its own, copied from a migrated one."""

import asyncio

import asyncpg
import pytest

from app.db.postgres.schema_version import check_database
from tests.support.postgres import execute, fresh_database, migrated_template, with_database


async def tables(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        query = "SELECT relname FROM pg_class WHERE relname IN ('mark', 'other') ORDER BY 1"
        return [row["relname"] for row in await connection.fetch(query)]
    finally:
        await connection.close()


@pytest.mark.parametrize("turn", [1, 2])
async def test_each_test_finds_its_database_without_the_others_tables(database_url: str, turn: int) -> None:
    assert await tables(database_url) == []
    await execute(database_url, "CREATE TABLE mark (n int)")
    assert await tables(database_url) == ["mark"], turn


async def test_a_tests_database_is_migrated(database_url: str) -> None:
    assert await check_database(database_url) == []


def mark(url: str) -> None:
    asyncio.run(execute(url, "CREATE TABLE mark (n int)"))


async def test_a_template_is_migrated_once_and_copied(postgres_server_url: str) -> None:
    async with migrated_template(postgres_server_url, mark) as template:
        for _ in range(2):
            async with fresh_database(postgres_server_url, template=template) as url:
                assert await tables(url) == ["mark"]
                await execute(url, "CREATE TABLE other (n int)")


async def test_a_database_is_dropped_even_when_somebody_is_connected(postgres_server_url: str) -> None:
    async with fresh_database(postgres_server_url) as url:
        client = await asyncpg.connect(url)
    client.terminate()
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(url)


async def test_the_distributions_server_serves_under_the_same_supervisor(debian_database_url: str) -> None:
    connection = await asyncpg.connect(debian_database_url)
    try:
        assert connection.get_server_version().major >= 15
        assert await connection.fetchval("SHOW server_encoding") == "UTF8"
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p@host:5433/a?sslmode=require", "postgresql://u:p@host:5433/b?sslmode=require"),
        ("postgresql+asyncpg://u@/a?host=/run", "postgresql://u@/b?host=/run"),
        ("postgresql://u@host", "postgresql://u@host/b"),
        ("postgresql:///a?host=/run", "postgresql:///b?host=/run"),
    ],
)
def test_only_the_database_of_a_url_changes(url: str, expected: str) -> None:
    assert with_database(url, "b") == expected
