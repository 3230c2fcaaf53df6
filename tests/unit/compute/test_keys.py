"""Keys: what identifies them, and what is none."""

from __future__ import annotations

import pytest

from moorage.compute.errors import ComputeError
from moorage.compute.keypairs import keys


@pytest.mark.parametrize("kind", [keys.SSH, keys.X509])
def test_a_generated_key_is_a_good_one(kind: str) -> None:
    made = keys.generate(kind, "somebody")
    digits = {keys.SSH: 16, keys.X509: 20}[kind]
    assert len(keys.fingerprint(kind, made.public_key).split(":")) == digits


def test_the_comment_does_not_count() -> None:
    made = keys.generate(keys.SSH, "somebody").public_key
    bare = " ".join(made.split()[:2])
    assert keys.fingerprint(keys.SSH, bare) == keys.fingerprint(keys.SSH, made)


@pytest.mark.parametrize("kind", [keys.SSH, keys.X509])
@pytest.mark.parametrize(
    "text",
    ["", "x", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQ", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"],
)
def test_what_is_no_key_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ComputeError, match="Keypair data is invalid"):
        keys.fingerprint(kind, text)
