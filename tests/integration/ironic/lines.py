"""How tests of the drivers reach an Ironic, and what went over the line."""

from __future__ import annotations

from typing import Any

from keystoneauth1 import session
from keystoneauth1.adapter import Adapter
from keystoneauth1.loading import get_plugin_loader

from moorage.drivers.ironic.api.client import IronicClient
from tests.lab.ironic.nodes import Nodes
from tests.support.faulty_proxy import FaultyProxy


def port_of(metal: Nodes) -> int:
    return int(metal.url.rpartition(":")[2])


def client(port: int, token: str = "") -> IronicClient:
    """With the token of somebody whom it lets do everything, if that Ironic asks for one."""
    name, options = ("admin_token", {"token": token}) if token else ("none", {})
    auth: Any = get_plugin_loader(name).load_from_options(endpoint=f"http://127.0.0.1:{port}", **options)
    return IronicClient(Adapter(session.Session(auth=auth), service_type="baremetal"))


def provisions(proxy: FaultyProxy) -> int:
    return sum(method == "PUT" and path.endswith("/states/provision") for method, path in proxy.requests)
