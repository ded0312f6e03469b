"""Which of the keys that an issuer publishes verify tokens."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from app.services.oidc.metadata import keys_of
from tests.support.gateways.oidc_issuer import ec_key, jwk, rsa_key


@pytest.mark.parametrize(
    ("more", "algorithms"),
    [
        ({}, {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        ({"alg": "RS256"}, {"RS256"}),
        ({"alg": "ES256"}, None),
        ({"alg": "none"}, None),
        ({"use": "enc"}, None),
        ({"key_ops": ["verify"]}, {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
        ({"key_ops": ["encrypt", "wrapKey"]}, None),
        ({"key_ops": None}, None),
        ({"kid": 7}, None),
    ],
)
def test_what_a_key_says_about_its_use(more: dict[str, Any], algorithms: set[str] | None) -> None:
    found = keys_of({"keys": [jwk(rsa_key("rsa-1"), "one") | more, jwk(ec_key(), "two", alg="ES256")]})
    assert [key.id for key in found] == (["two"] if algorithms is None else ["one", "two"])
    if algorithms is not None:
        assert found[0].algorithms == algorithms


def test_a_weak_key_verifies_nothing() -> None:
    weak = rsa.generate_private_key(65537, 1024)
    assert keys_of({"keys": [jwk(weak, "weak")]}) == ()
