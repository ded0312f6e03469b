"""Strategies for plain JSON values, and the settings of properties that a busy machine must not fail."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=10)
# A busy machine is no reason to fail: what is slow here is drawing values, and the deadlines are the tests' own.
# On a busy machine an example may take any time.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
JSON_VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5), max_leaves=12
)
