"""Hosts, nodes and servers as agents and conductors would have written them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.tables.compute import nodes, servers, services
from tests.support.compute import Cloud


def add_service(cloud: Cloud, host: str, binary: str = "nova-compute", age: float = 0, **more: Any) -> str:
    """A service that was seen `age` seconds ago; its UUID."""
    uuid = uuids.generate()
    row = {"uuid": uuid, "host": host, "binary": binary, "version": 1, **more}
    with cloud.database.write() as connection:
        connection.execute(sa.insert(services).values(seen_at=utcnow() - timedelta(seconds=age), **row))
    return uuid


def add_node(cloud: Cloud, host: str, name: str, **facts: Any) -> str:
    uuid = uuids.generate()
    with cloud.database.write() as connection:
        connection.execute(
            sa.insert(nodes).values(uuid=uuid, name=name, host=host, hypervisor_type="fake", facts=facts)
        )
    return uuid


def add_server(cloud: Cloud, name: str, host: str, node_uuid: str, **more: Any) -> str:
    uuid = uuids.generate()
    flavor = {"id": "f", "name": "f", "vcpus": 2, "ram": 512, "disk": 10, "ephemeral": 5, "swap": 0}
    row = {
        "uuid": uuid,
        "name": name,
        "hostname": name,
        "project_id": "wonderland",
        "user_id": "alice",
        "reservation_id": "r-1",
        "flavor": {**flavor, "extra_specs": {}},
        "flavorid": "f",
        "vm_state": "active",
        "host": host,
        "node_uuid": node_uuid,
        **more,
    }
    with cloud.database.write() as connection:
        connection.execute(sa.insert(servers).values(row))
    return uuid
