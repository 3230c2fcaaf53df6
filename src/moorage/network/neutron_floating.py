"""Floating addresses of servers that are there: led to one of their addresses, as whoever asks sees them."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.network import neutron_faults
from moorage.network.contract import FloatingChange, NetworkError, NetworkFault, PortRecord, Requester
from moorage.network.neutron_link import Json, NeutronFault, NeutronLink

NOT_FOUND = "floating IP not found"


class FloatingAddresses:
    """A late call is refused: it names the revision of the address that it was decided on."""

    def __init__(self, link: NeutronLink) -> None:
        self._link = link

    def lead(self, requester: Requester, ports: Sequence[PortRecord], change: FloatingChange) -> str | None:
        """The server that it led to before, if it was another one."""
        port = next(port for port in ports if change.fixed in port.addresses)
        link = self._link.as_user(requester.token)
        try:
            floating = self._find(link, change.floating)
            before = floating["port_id"]
            values = {"port_id": port.id, "fixed_ip_address": change.fixed}
            link.update("floatingips", floating["id"], values, floating.get("revision_number"))
            return None if before in (None, port.id) else self._server_of(before)
        except NeutronFault as fault:
            raise _told(fault) from fault

    def take_away(self, requester: Requester, ports: Sequence[PortRecord], address: str) -> None:
        link = self._link.as_user(requester.token)
        try:
            floating = self._find(link, address)
            if floating["port_id"] not in {port.id for port in ports}:
                words = f"Floating IP {address} is not associated with instance"
                raise NetworkError(words, fault=NetworkFault.CONFLICT)
            link.update("floatingips", floating["id"], {"port_id": None}, floating.get("revision_number"))
        except NeutronFault as fault:
            raise _told(fault) from fault

    def _find(self, link: NeutronLink, address: str) -> Json:
        found = link.find("floatingips", [("floating_ip_address", address)])
        if not found:
            raise NetworkError(NOT_FOUND, fault=NetworkFault.NOT_FOUND)
        return found[0]

    def _server_of(self, port_id: str) -> str | None:
        """Empty for what is no server's, or gone."""
        found = self._link.find("ports", [("id", port_id)])
        return str(found[0]["device_id"]) or None if found else None


def _told(fault: NeutronFault) -> NetworkError:
    """Whatever else Neutron has against it is a bad request here."""
    if fault.status in (401, 403):
        return neutron_faults.of_request(fault)
    return NetworkError(f"Unable to associate floating IP: {fault}")
