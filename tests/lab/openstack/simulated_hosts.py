"""Layer-2 agents of hosts that do not exist, inside the Neutron process.

Neutron binds a port only to a host whose agent lives, and learns from agents which host reaches which
segment. This plug-in speaks for as many agents as a test likes, through the server side of Neutron's own
agent interface: heartbeats, bridge mappings, bandwidth, and "the device is up", upon which Neutron tells
Compute.

    GET    /hosts                     what there is
    PUT    /hosts/NAME                add or change one: physnets, bandwidth, alive, plugs
    POST   /ports/ID/up?host=NAME     the device is up there: for hosts that do not plug by themselves
"""

from __future__ import annotations

import datetime
import http.server
import json
import logging
import os
import threading
import time
import urllib.parse
from typing import Any

from neutron.db import agents_db, models_v2
from neutron.objects import agent as agent_objects
from neutron.plugins.ml2 import models as ml2_models
from neutron.plugins.ml2 import rpc as ml2_rpc
from neutron_lib import constants, context
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.db import api as db_api
from neutron_lib.plugins import directory
from neutron_lib.services import base
from oslo_utils import timeutils

LOG = logging.getLogger(__name__)
PORT = "SIMULATED_HOSTS_PORT"
HEARTBEAT_SECONDS = 5.0
PLUG_SECONDS = 0.5
LONG_AGO = datetime.timedelta(days=365)

Host = dict[str, Any]


class SimulatedHosts(base.ServicePluginBase):  # type: ignore[misc]
    supported_extension_aliases: list[str] = []

    @classmethod
    def get_plugin_type(cls) -> str:
        return "simulated_hosts"

    def get_plugin_description(self) -> str:
        return "Simulated layer-2 agents"

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self._lock = threading.RLock()
        registry.subscribe(self._start, resources.PROCESS, events.AFTER_INIT)

    def _start(self, _resource: Any, _event: Any, _trigger: Any, payload: Any = None) -> None:
        self._core = directory.get_plugin()
        self._reports = agents_db.AgentExtRpcCallback(self._core)
        self._devices = ml2_rpc.RpcCallbacks(self._core.notifier, self._core.type_manager)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ[PORT])), Handler)
        server.daemon_threads = True
        server.plugin = self  # type: ignore[attr-defined]
        for target in (server.serve_forever, self._heartbeats, self._plugging):
            threading.Thread(target=target, daemon=True).start()

    def put(self, name: str, given: Host) -> Host:
        with self._lock:
            usual = {"physnets": [], "bandwidth": {}, "alive": True, "plugs": True}
            host = self.hosts[name] = {**usual, **self.hosts.get(name, {}), **given}
            if host["alive"]:
                self._report(name, host, start=True)
            else:
                self._silence(name)
            return host

    def up(self, port_id: str, host: str) -> None:
        self._devices.update_device_up(
            context.get_admin_context(), agent_id=f"ovs-agent-{host}", device=port_id, host=host
        )

    def _report(self, name: str, host: Host, start: bool = False) -> None:
        mappings = {physnet: f"br-{physnet}" for physnet in host["physnets"]}
        defaults = {"allocation_ratio": 1.0, "min_unit": 1, "step_size": 1, "reserved": 0}
        configurations = {
            "bridge_mappings": mappings,
            "tunnel_types": ["vxlan"],
            "integration_bridge": "br-int",
            "datapath_type": "system",
            "ovs_hybrid_plug": False,
            "resource_provider_bandwidths": host["bandwidth"],
            "resource_provider_inventory_defaults": defaults,
            "resource_provider_hypervisors": dict.fromkeys({*mappings.values(), *host["bandwidth"]}, name),
        }
        state = {
            "agent_type": constants.AGENT_TYPE_OVS,
            "binary": "neutron-openvswitch-agent",
            "topic": constants.L2_AGENT_TOPIC,
            "host": name,
            "configurations": configurations,
            **({"start_flag": True} if start else {}),
        }
        now = timeutils.utcnow().strftime(constants.ISO8601_TIME_FORMAT)
        self._reports.report_state(context.get_admin_context(), agent_state={"agent_state": state}, time=now)

    def _silence(self, name: str) -> None:
        for agent in agent_objects.Agent.get_objects(context.get_admin_context(), host=name):
            agent.heartbeat_timestamp = timeutils.utcnow() - LONG_AGO
            agent.update()

    def _heartbeats(self) -> None:
        while True:
            time.sleep(HEARTBEAT_SECONDS)
            with self._lock:
                for name, host in self.hosts.items():
                    if host["alive"]:
                        self._report(name, host)

    def _plugging(self) -> None:
        """What a hypervisor would do with the ports of its servers: plug those that are bound to it."""
        while True:
            time.sleep(PLUG_SECONDS)
            try:
                for port_id, name in self._waiting():
                    host = self.hosts.get(name)
                    if host and host["plugs"] and host["alive"]:
                        self.up(port_id, name)
            except Exception:
                LOG.exception("plugging failed")

    def _waiting(self) -> list[tuple[str, str]]:
        admin = context.get_admin_context()
        binding, port = ml2_models.PortBinding, models_v2.Port
        with db_api.CONTEXT_READER.using(admin):
            query = admin.session.query(port.id, binding.host).join(binding, binding.port_id == port.id)
            found = query.filter(
                port.status == constants.PORT_STATUS_DOWN,
                port.device_owner.like("compute:%"),
                binding.status == constants.ACTIVE,
                binding.vif_type == "ovs",
            )
            return [(row[0], row[1]) for row in found.all()]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        plugin: SimulatedHosts = self.server.plugin  # type: ignore[attr-defined]
        url = urllib.parse.urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        try:
            match (self.command, url.path.strip("/").split("/")):
                case ("GET", ["hosts"]):
                    self._send(200, plugin.hosts)
                case ("PUT", ["hosts", name]):
                    self._send(200, plugin.put(name, body))
                case ("POST", ["ports", port_id, "up"]):
                    plugin.up(port_id, dict(urllib.parse.parse_qsl(url.query))["host"])
                    self._send(200, {})
                case _:
                    self._send(404, {})
        except Exception as error:
            LOG.exception("a simulated host failed")
            self._send(500, {"error": repr(error)})

    do_GET = do_PUT = do_POST = _answer  # noqa: N815 (names of the base class)

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Its own log is enough."""
