"""A sample is planted, a conductor resumes it, and all that there is of the server is as it should be."""

from __future__ import annotations

from typing import Any

from tests.functional.conductor.older.endings import Ending, cancelled, ending
from tests.functional.conductor.older.sample import Sample
from tests.functional.conductor.older.site import Site
from tests.functional.conductor.older.ways import bring

SELDOM: dict[str, Any] = {
    "agent.heartbeat_interval": 5,
    "agent.inventory_interval": 5,
    "conductor.threads": 1,
}
"""Nothing here waits for an agent to speak up by itself."""
BANDWIDTH = {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}
"""What a port needs that needs some."""


def resume(site: Site, sample: Sample) -> None:
    uuid, host, operation = bring(site, sample)
    site.plant(sample, operation)
    wanted = ending(sample)
    assert site.await_outcome(operation.id) == wanted.outcome
    site.await_rest()
    if wanted.status is None:
        assert site.api.simulate_get(f"/v2.1/servers/{uuid}").status_code == 404
        assert (site.holders(), site.addressed()) == (set(), set())
    else:
        _check(site, uuid, host, wanted)
    if sample.needs_bandwidth:
        (amounts,) = site.held(uuid).values()
        assert amounts == {"VCPU": 1, **(BANDWIDTH if wanted.has_port else {})}


def cancel(site: Site, sample: Sample) -> None:
    """The same, but somebody cancels it before a conductor goes on."""
    uuid, host, operation = bring(site, sample)
    body = {"cancel": {"reason": "enough"}}
    reply = site.api.simulate_post(f"/v2.1/moorage-operations/{operation.id}/action", json=body)
    assert reply.status_code == 202, reply.text
    site.plant(sample, operation)
    wanted = cancelled(sample)
    assert wanted is not None
    assert site.await_outcome(operation.id) == wanted.outcome
    assert "enough" in site.error(operation.id)
    site.await_rest()
    _check(site, uuid, host, wanted)


def _check(site: Site, uuid: str, host: str | None, wanted: Ending) -> None:
    server = site.server(uuid)
    assert (server["status"], server["OS-EXT-STS:task_state"]) == (wanted.status, None), server.get("fault")
    now = server["OS-EXT-SRV-ATTR:host"]
    assert (now is None) == (wanted.status in ("ERROR", "SHELVED_OFFLOADED"))
    assert wanted.elsewhere in (None, now != host)
    held = {uuid: now} if now is not None else {}
    if wanted.migration is not None:
        migration = site.get(f"/v2.1/os-migrations?instance_uuid={uuid}")["migrations"][0]
        assert migration["status"] == wanted.migration
        if wanted.status == "VERIFY_RESIZE":
            held[migration["uuid"]] = host
    nodes = site.nodes()
    assert {consumer: set(site.held(consumer)) for consumer in site.holders()} == {
        consumer: {nodes[where]} for consumer, where in held.items()
    }
    assert [amounts["VCPU"] for amounts in site.held(uuid).values()] == [server["flavor"]["vcpus"]] * bool(
        now
    )
    assert site.addressed() == ({uuid} if wanted.has_port else set())
