"""Where a port is bound in Neutron: at one host, or at two while a running server goes from one to the other.

Neutron knows no leases, so a conductor that was paused may call late. A late `expect` leaves an inactive
binding, and the name of a host at which nothing is plugged: no traffic goes there, and the next `bind`, or
whoever gives the port back, takes both away.
"""

from __future__ import annotations

from moorage.network import neutron_faults, neutron_ports
from moorage.network.contract import Binding, NetworkError, NetworkFault, PortRecord, VifBinding
from moorage.network.neutron_link import Json, NeutronFault, NeutronLink

_FAILED = "binding_failed"
_TRIES = 5


class PortBindings:
    def __init__(self, link: NeutronLink) -> None:
        self._link = link

    def bind(self, binding: Binding, record: PortRecord) -> Json:
        """This host is the only one from now on; answers with the port as it is then."""
        if record.expected == binding.host:
            self._activate(record.id, binding.host)
        if record.expected:
            self._link.drop_inactive_bindings(record.id)
        try:
            port = self._link.update("ports", record.id, neutron_ports.bound(binding, record))
        except NeutronFault as fault:
            raise neutron_faults.of_binding(fault, binding.host) from fault
        if neutron_ports.migrating_to(port):
            self._link.drop_inactive_bindings(record.id)
            port = self._settle(port)
        if port["binding:vif_type"] == _FAILED and not binding.by_driver:
            raise NetworkError(
                f"Neutron could not bind port {record.id} at host {binding.host}.", retry_elsewhere=True
            )
        return port

    def expect(self, binding: Binding, record: PortRecord) -> VifBinding:
        """A second binding at this host; what serves the port where it is learns that it will go there."""
        try:
            added = self._link.add_binding(record.id, binding.host, neutron_ports.profile(binding, record))
            self._announce(record.id, binding.host)
        except NeutronFault as fault:
            raise neutron_faults.of_binding(fault, binding.host) from fault
        return neutron_ports.vif_binding(added)

    def forget(self, record: PortRecord) -> None:
        """Undo what `expect` may have done."""
        try:
            self._link.drop_inactive_bindings(record.id)
            port = self._link.show("ports", record.id)
            if neutron_ports.migrating_to(port):
                self._settle(port)
        except NeutronFault as fault:
            if fault.status != 404:
                raise

    def _activate(self, port_id: str, host: str) -> None:
        try:
            self._link.activate_binding(port_id, host)
        except NeutronFault as fault:
            raise neutron_faults.of_binding(fault, host) from fault

    def _announce(self, port_id: str, host: str) -> None:
        """Without this, traffic follows only seconds after the server has gone."""
        for _ in range(_TRIES):
            port = self._link.show("ports", port_id)
            if host in (port["binding:host_id"], neutron_ports.migrating_to(port)):
                return
            values = {"binding:profile": neutron_ports.announced(port, host)}
            try:
                self._link.update("ports", port_id, values, port["revision_number"])
            except NeutronFault as fault:
                if fault.status != 412:
                    raise
            else:
                return
        raise NetworkError(f"Port {port_id} is being changed by somebody else.", fault=NetworkFault.CONFLICT)

    def _settle(self, port: Json) -> Json:
        """It goes nowhere any more."""
        return self._link.update("ports", port["id"], {"binding:profile": neutron_ports.settled(port)})
