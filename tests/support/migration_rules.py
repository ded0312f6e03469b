"""What a migration may not do to a table with millions of rows, because writes would wait for it."""

import re
from collections.abc import Collection, Sequence

_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY).*? ON (\w+)")
_CONSTRAINT = re.compile(
    r"ALTER TABLE (\w+) .*"
    r"(?:SET NOT NULL|ADD (?:CONSTRAINT \w+ )?(?:CHECK|FOREIGN|UNIQUE|PRIMARY|EXCLUDE)(?!.*NOT VALID))"
)
_ROWS = re.compile(r"(?:WITH .*? )?(?:UPDATE|DELETE FROM|LOCK TABLE|TRUNCATE) (\w+)")
_RULES = {
    _INDEX: "builds an index of {} under a lock: use app.db.postgres.concurrent_indexes",
    _CONSTRAINT: "checks all rows of {} under a lock: add the constraint NOT VALID, and validate it afterwards",
    _ROWS: "locks rows of {} until the migration ends: let the program fill in a column, in batches",
}


def find_blocks(statements: Sequence[str], large: Collection[str]) -> list[str]:
    """Return why writes of these large tables would wait for the statements."""
    found = []
    for statement in (" ".join(each.split()) for each in statements):
        for pattern, message in _RULES.items():
            match = pattern.match(statement)
            if match and match[1] in large:
                found.append(f"{message.format(match[1])}: {statement}")
    return found
