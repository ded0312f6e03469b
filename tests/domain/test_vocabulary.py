"""The words of the wire format."""

import pytest

from app.domain.vocabulary import Evidence, LegacySpelling, Outcome, ReplicaPhase

LEGACY: tuple[type[LegacySpelling], ...] = (ReplicaPhase, Outcome, Evidence)


@pytest.mark.parametrize("words", LEGACY)
def test_the_lower_case_words_of_version_0_1_are_read(words: type[LegacySpelling]) -> None:
    assert {word: words(word.value.lower()) for word in words} == {word: word for word in words}
    with pytest.raises(ValueError, match="not a valid"):
        words("no such word")


def test_no_other_words_are_read_in_lower_case() -> None:
    assert set(LegacySpelling.__subclasses__()) == set(LEGACY)
