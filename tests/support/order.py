"""Which test files are handed to the workers first: those that take longest, so that none of them is left to
one worker at the end, while the others have nothing to do.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LONGEST_FIRST = (
    "tests/integration/test_neutron.py",
    "tests/integration/ironic/test_bare_metal.py",
    "tests/integration/libvirt/test_ovn.py",
    "tests/functional/conductor/test_older_operations.py",
    "tests/integration/ironic/test_driver.py",
    "tests/integration/ironic/test_standalone.py",
    "tests/integration/ironic/test_networked.py",
    "tests/chaos/test_step_kills.py",
    "tests/conformance/test_nova.py",
    "tests/functional/conductor/test_audit.py",
    "tests/functional/conductor/test_targets.py",
    "tests/chaos/test_scaled_kills.py",
    "tests/functional/mirror/test_outages.py",
    "tests/integration/operate/test_faults.py",
    "tests/functional/network/test_faults.py",
    "tests/conformance/test_client_suites.py",
    "tests/functional/conductor/test_draining.py",
    "tests/functional/placement/test_clients.py",
    "tests/conformance/test_tempest.py",
    "tests/integration/test_scaled.py",
    "tests/integration/test_rolling_upgrade.py",
    "tests/chaos/test_frozen_agents.py",
    "tests/functional/mirror/test_any_order.py",
    "tests/integration/test_openstack_pieces.py",
    "tests/conformance/test_same_writes.py",
    "tests/conformance/test_takeover.py",
    "tests/conformance/test_nova_on_mariadb.py",
    "tests/chaos/test_drain_kills.py",
    "tests/chaos/test_late_calls.py",
    "tests/conformance/test_published_suites.py",
    "tests/functional/placement/test_claim_desk.py",
    "tests/integration/libvirt/test_moves.py",
    "tests/integration/libvirt/test_adopted_moves.py",
    "tests/integration/ironic/test_rescue.py",
    "tests/functional/conductor/test_growth.py",
    "tests/functional/conductor/test_rebalancing.py",
    "tests/chaos/test_guest_kills.py",
    "tests/functional/conductor/test_resizes_in_place.py",
    "tests/integration/operate/test_run_book.py",
    "tests/conformance/test_same_answers.py",
    "tests/functional/mirror/test_following.py",
    "tests/integration/bus/test_keys_without_a_stop.py",
    "tests/integration/test_deploy_page.py",
    "tests/integration/ironic/test_reserving.py",
    "tests/integration/ironic/test_late_writes.py",
    "tests/functional/conductor/test_plan.py",
    "tests/functional/network/test_upgrade.py",
    "tests/functional/conductor/test_cold_moves.py",
    "tests/functional/cli/test_signals.py",
    "tests/functional/mirror/test_reconciliation.py",
    "tests/functional/conductor/test_machine_actions.py",
    "tests/functional/placement/test_trees.py",
    "tests/integration/libvirt/test_slow_moves.py",
    "tests/functional/network/test_plugging.py",
    "tests/integration/libvirt/test_contract.py",
    "tests/functional/conductor/test_reservation.py",
    "tests/integration/test_cloud_client.py",
    "tests/integration/bus/test_messaging.py",
    "tests/functional/placement/test_any_order.py",
    "tests/functional/conductor/test_vanished_machines.py",
    "tests/integration/libvirt/test_killed.py",
    "tests/functional/mirror/test_backlog.py",
    "tests/functional/compute/servers/test_list.py",
    "tests/integration/libvirt/test_cloud.py",
    "tests/functional/conductor/test_switching.py",
    "tests/functional/conductor/test_quarantine.py",
    "tests/functional/cli/test_sync_aggregates.py",
    "tests/functional/compute/test_bad_input.py",
    "tests/functional/compute/servers/test_junk.py",
    "tests/integration/libvirt/test_embedded.py",
)
"""By what they took in a run of all (`costs.py`), most of a minute or more; the others need no order."""

_RANKS = {ROOT / name: rank for rank, name in enumerate(LONGEST_FIRST)}


def rank(file: Path) -> int:
    return _RANKS.get(file, len(_RANKS))
