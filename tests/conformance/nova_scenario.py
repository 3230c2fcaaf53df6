"""What an operator and a user of Nova do that Placement gets to see; the books are read after each step."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.nova_books import Auditor, Books
from tests.lab.nova.service import PATIENCE, Nova
from tests.support.processes import NotReadyError, wait_until

HOSTS = ("left", "right")
ORPHAN = "00000000-0000-4000-8000-00000000dead"


@dataclass
class Scenario:
    nova: Nova
    auditor: Auditor
    image_id: str
    books: dict[str, Books] = field(default_factory=dict)
    """After each step."""
    said: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    """By each of `nova-manage`'s commands: its exit status, and its words in lines."""
    servers: dict[str, Any] = field(default_factory=dict)
    aggregates: dict[str, Any] = field(default_factory=dict)
    in_its_prime: Callable[[Scenario], None] = lambda _: None
    """Called when there is most in the cloud; leaves Placement as it was, but for servers."""

    def play(self, watch: Callable[[str], None] = lambda _: None) -> None:
        """`watch` is told of each step, while all is as the books say."""
        for step in STEPS:
            if step == END:
                self.in_its_prime(self)
            getattr(self, step)()
            self.books[step] = self.auditor.books()
            watch(step)

    # ------------------------------------------------------------ steps

    def hosts_report(self) -> None:
        self._wait(self._all_report, "the providers")
        for name, vcpus, ram in (("small", 1, 512), ("large", 2, 1024), ("huge", 64, 512)):
            self.nova.api.create_flavor(name=name, vcpus=vcpus, ram=ram, disk=1, id=name)

    def hosts_are_grouped(self) -> None:
        for name, host in (("zone-left", "left"), ("zone-right", "right")):
            made = self.nova.api.create_aggregate(name=name, availability_zone=name)
            self.aggregates[name] = made
            self.auditor.names[made.uuid] = name
            self.nova.api.add_host_to_aggregate(made, host)

    def servers_boot(self) -> None:
        """On a named host, in a named zone, and one that fits nowhere."""
        self.boot("confirmed", host="left")
        self.boot("reverted", host="right")
        self.boot("zoned", availability_zone="zone-right")
        self.boot("oversized", flavor="huge")
        self.settled("ACTIVE", "confirmed", "reverted", "zoned")
        self.settled("ERROR", "oversized")

    def servers_resize(self) -> None:
        for name in ("confirmed", "reverted"):
            self.nova.api.resize_server(self.servers[name], "large")
        self.settled("VERIFY_RESIZE", "confirmed", "reverted")
        self._learn_migrations()

    def a_resize_is_confirmed(self) -> None:
        self.nova.api.confirm_server_resize(self.servers["confirmed"])
        self.settled("ACTIVE", "confirmed")
        self._await_consumers("confirmed", "reverted", "zoned", "move of reverted")

    def a_resize_is_reverted(self) -> None:
        self.nova.api.revert_server_resize(self.servers["reverted"])
        self.settled("ACTIVE", "reverted")
        self._await_consumers("confirmed", "reverted", "zoned")

    def a_host_is_disabled(self) -> None:
        """Nothing comes to it, not even by name."""
        self.nova.api.disable_service(self._service("right"))
        self._await_trait("right", there=True)
        self.boot("steered")
        self.boot("refused", host="right")
        self.settled("ACTIVE", "steered")
        self.settled("ERROR", "refused")

    def a_host_is_enabled(self) -> None:
        self.nova.api.enable_service(self._service("right"))
        self._await_trait("right", there=False)

    def an_audit_finds_what_nobody_owns(self) -> None:
        left = self.auditor.providers()["left"]
        held = {
            "allocations": {left: {"resources": {"VCPU": 1}}},
            "project_id": "lost",
            "user_id": "lost",
            "consumer_type": "INSTANCE",
            "consumer_generation": None,
        }
        self.auditor.ask("PUT", f"/allocations/{ORPHAN}", held)
        self._manage("audit", "--verbose")

    def an_audit_deletes_it(self) -> None:
        self._manage("audit", "--verbose", "--delete")

    def allocations_are_healed(self) -> None:
        for name in ("confirmed", "zoned"):
            self.auditor.ask("DELETE", f"/allocations/{self.servers[name].id}")
        self._manage("heal_allocations", "--verbose")

    def aggregates_are_synced(self) -> None:
        for uuid in self.auditor.providers().values():
            path = f"/resource_providers/{uuid}/aggregates"
            generation = self.auditor.ask("GET", path)["resource_provider_generation"]
            self.auditor.ask("PUT", path, {"aggregates": [], "resource_provider_generation": generation})
        self._manage("sync_aggregates", "--verbose")

    def servers_are_deleted(self) -> None:
        for server in self.servers.values():
            self.nova.api.delete_server(server)
        for server in self.servers.values():
            self.nova.api.wait_for_delete(server, wait=PATIENCE)
        self._await_consumers()

    def groups_are_deleted(self) -> None:
        for host, aggregate in zip(HOSTS, self.aggregates.values(), strict=True):
            self.nova.api.remove_host_from_aggregate(aggregate, host)
            self.nova.api.delete_aggregate(aggregate)

    def a_host_is_deleted(self) -> None:
        self.nova.computes["right"].kill()
        self.nova.api.delete_service(self._service("right"))
        self._wait(lambda: set(self.auditor.providers()) == {"left"}, "the provider to go")

    # ------------------------------------------------------------ how

    def boot(self, name: str, flavor: str = "small", **more: Any) -> None:
        made = self.nova.api.create_server(
            **{"name": name, "image_id": self.image_id, "flavor_id": flavor, "networks": "none", **more}
        )
        self.servers[name] = made
        self.auditor.names[made.id] = name

    def settled(self, status: str, *names: str) -> None:
        for name in names:
            shown = self._until(name, {status, "ERROR"})
            assert shown.status == status, f"{name}: {shown.status} {shown.fault}"

    def _until(self, name: str, statuses: set[str]) -> Any:
        def there() -> bool:
            shown = self.nova.api.get_server(self.servers[name].id)
            return shown.status in statuses and shown.task_state is None

        self._wait(there, f"{name} to be {statuses}")
        return self.nova.api.get_server(self.servers[name].id)

    def _learn_migrations(self) -> None:
        names = {server.id: name for name, server in self.servers.items()}
        for migration in self.nova.api.migrations():
            self.auditor.names[migration.uuid] = f"move of {names[migration.server_id]}"

    def _service(self, host: str) -> Any:
        (service,) = self.nova.api.services(host=host, binary="nova-compute")
        return service

    def _all_report(self) -> bool:
        providers = self.auditor.books()["providers"]
        return len(providers) == len(HOSTS) and all(each["traits"] for each in providers.values())

    def _await_consumers(self, *names: str) -> None:
        self._wait(lambda: self.auditor.consumers() == set(names), f"just {names} to hold anything")

    def _await_trait(self, host: str, *, there: bool) -> None:
        def seen() -> bool:
            return ("COMPUTE_STATUS_DISABLED" in self.auditor.books()["providers"][host]["traits"]) is there

        self._wait(seen, f"the trait of {host}")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        """Not in haste: whoever answers has only what processor time the question leaves."""

        def holds() -> bool:
            time.sleep(0.3)
            return condition()

        try:
            wait_until(holds, what, PATIENCE)
        except NotReadyError as error:
            raise NotReadyError(f"{error}: {self.auditor.books()}\n{self.nova.logs()}") from None

    def _manage(self, *command: str) -> None:
        ran = self.nova.manage("placement", *command)
        words = sorted(self.auditor.in_words(ran.stdout).splitlines())
        self.said[" ".join(command)] = (ran.returncode, words)


END = "servers_are_deleted"
STEPS = (
    *("hosts_report", "hosts_are_grouped", "servers_boot", "servers_resize", "a_resize_is_confirmed"),
    *("a_resize_is_reverted", "a_host_is_disabled", "a_host_is_enabled", "an_audit_finds_what_nobody_owns"),
    *("an_audit_deletes_it", "allocations_are_healed", "aggregates_are_synced", END),
    *("groups_are_deleted", "a_host_is_deleted"),
)
