"""How properties are checked.

`make test` uses the profile `fixed`: every run checks the same examples, so that only a change of the code can make a
test fail. `make fuzz` uses the profile `fuzz`: different examples in each round, from a seed that it prints. No
example database is kept; an example that fails becomes a case of its test. `make mutate` uses the profile `mutation`:
the examples of `fixed`, of which a failing one is not made smaller, because nobody reads it.
"""

from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal.conjecture import engine

# hypothesis makes a failing example smaller for up to 300 s, after which pytest ends the test without a report, and has
# no setting for this bound. With 15 s, a property that fails reports within half a minute.
engine.MAX_SHRINKING_SECONDS = 15

# A deadline or a health check measures the machine, which may be busy.
# On a busy machine an example may take any time.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)

settings.register_profile("fixed", _UNHURRIED, derandomize=True)
settings.register_profile("fuzz", _UNHURRIED, derandomize=False, print_blob=False)
settings.register_profile(
    "mutation",
    _UNHURRIED,
    derandomize=True,
    report_multiple_bugs=False,
    phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],
)
settings.load_profile("fixed")


def examples(*, fixed: int, fuzz: int) -> settings:
    """Return the settings of a slow property. `make test` repeats the same examples, so it needs fewer."""
    return settings(max_examples=fuzz if settings.get_current_profile_name() == "fuzz" else fixed)
