"""The words of the wire format."""

import pytest

from app.domain.vocabulary import LegacySpelling


@pytest.mark.parametrize("words", LegacySpelling.__subclasses__())
def test_the_lower_case_words_of_version_0_1_are_read(words: type[LegacySpelling]) -> None:
    assert {word: words(word.value.lower()) for word in words} == {word: word for word in words}
    with pytest.raises(ValueError, match="not a valid"):
        words("no such word")
