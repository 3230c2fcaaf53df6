"""A boot whose request is looked for elsewhere."""

from __future__ import annotations

from tests.support.crossing import Crossing
from tests.support.stage_neutron import NETWORK


def boot(cloud: Crossing, headers: dict[str, str]) -> tuple[str, str]:
    """A server, and the id of the request for it."""
    images = cloud.get("/image/v2/images")["images"]
    image = next(found["id"] for found in images if "cirros" in found["name"])
    server = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": [{"uuid": NETWORK}]}
    reply = cloud.api.simulate_post("/v2.1/servers", json={"server": server}, headers=headers)
    assert reply.status_code == 202, reply.text
    return reply.json["server"]["id"], reply.headers["x-openstack-request-id"]
