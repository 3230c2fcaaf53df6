"""What tenants are told of a fault, and what only administrators see."""

from __future__ import annotations

import pytest

from moorage.compute.servers.fault import fault

NODE = "6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            f"Ironic answered 409 to PUT /v1/nodes/{NODE}/states/power: Node {NODE} is locked by host c-1",
            "the bare-metal service refused it: the Node is locked by host c-1",
        ),
        (
            "Ironic does not answer: Unable to connect to http://10.1.2.3:6385/v1: refused",
            "Ironic does not answer: Unable to connect to (an address) refused",
        ),
        (f"node {NODE} has server {NODE}, not s", "the node has the server, not s"),
        ("can't reach 10.1.2.3:6385", "can't reach (an address)"),
        ("no file /var/lib/moorage/images/x.raw", "no file (a path)"),
    ],
)
def test_addresses_paths_and_names_of_machines_are_for_administrators(said: str, told: str) -> None:
    made = fault(said)
    assert (made["message"], made["details"]) == (told, said)


@pytest.mark.parametrize(
    "said",
    [
        "No valid host was found. 3 of 4 nodes have no CUSTOM_GOLD/CUSTOM_SSD.",
        f"Port {NODE} could not be found.",
        "the host did not answer",
        "version 1.2.3 is too old",
    ],
)
def test_what_tells_nothing_of_the_inside_stays_as_it_is(said: str) -> None:
    made = fault(said)
    assert made["message"] == said
    assert "details" not in made
