"""Which test files are handed to the workers first: those that take longest, so that none of them is left to
one worker at the end, while the others have nothing to do.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LONGEST_FIRST = (
    "tests/integration/test_neutron.py",
    "tests/integration/libvirt/test_ovn.py",
    "tests/integration/ironic/test_bare_metal.py",
    "tests/integration/ironic/test_standalone.py",
    "tests/conformance/test_nova.py",
    "tests/chaos/test_scaled_kills.py",
    "tests/integration/test_openstack_pieces.py",
    "tests/integration/test_scaled.py",
    "tests/conformance/test_tempest.py",
    "tests/integration/ironic/test_driver.py",
    "tests/chaos/test_frozen_agents.py",
    "tests/chaos/test_guest_kills.py",
    "tests/chaos/test_late_calls.py",
    "tests/conformance/test_same_answers.py",
    "tests/integration/ironic/test_networked.py",
    "tests/conformance/test_published_suites.py",
    "tests/conformance/test_client_suites.py",
    "tests/integration/test_keystone.py",
    "tests/integration/test_unified_limits.py",
    "tests/integration/test_keystone_cloud.py",
    "tests/chaos/test_kill.py",
    "tests/chaos/test_races.py",
    "tests/conformance/test_same_writes.py",
    "tests/integration/test_deploy_page.py",
    "tests/integration/ironic/test_rescue.py",
    "tests/integration/ironic/test_reserving.py",
    "tests/integration/ironic/test_late_writes.py",
    "tests/integration/bus/test_agent_process.py",
    "tests/integration/bus/test_messaging.py",
    "tests/functional/placement/test_clients.py",
    "tests/functional/network/test_upgrade.py",
    "tests/functional/mirror/test_following.py",
    "tests/functional/mirror/test_outages.py",
    "tests/integration/libvirt/test_cloud.py",
    "tests/integration/libvirt/test_embedded.py",
    "tests/integration/libvirt/test_networked_guest.py",
    "tests/integration/libvirt/test_contract.py",
    "tests/integration/libvirt/test_guest.py",
    "tests/conformance/test_bad_input.py",
    "tests/chaos/test_step_kills.py",
    "tests/chaos/test_move_kills.py",
    "tests/functional/compute/servers/test_create.py",
    "tests/functional/cli/test_sync_aggregates.py",
    "tests/functional/cli/test_database_commands.py",
    "tests/functional/cli/test_signals.py",
    "tests/functional/cli/test_explain_and_plan.py",
    "tests/functional/cli/test_up.py",
    "tests/functional/conductor/test_cold_moves.py",
    "tests/integration/test_cloud_sdk.py",
    "tests/integration/test_compute_policy.py",
    "tests/functional/conductor/test_stalls.py",
    "tests/functional/conductor/test_live_migration.py",
    "tests/functional/conductor/test_quarantine.py",
    "tests/functional/cli/test_ironic_commands.py",
    "tests/functional/cli/test_slow_clients.py",
    "tests/functional/compute/test_bad_input.py",
    "tests/chaos/test_boot_kills.py",
    "tests/functional/images/test_transfers.py",
    "tests/integration/test_cloud_client.py",
    "tests/integration/test_moves_client.py",
    "tests/integration/test_images_client.py",
    "tests/functional/compute/servers/test_list.py",
    "tests/functional/compute/servers/test_junk.py",
)
"""By what they take on a machine that has nothing else to do; the others need no order."""

_RANKS = {ROOT / name: rank for rank, name in enumerate(LONGEST_FIRST)}


def rank(file: Path) -> int:
    return _RANKS.get(file, len(_RANKS))
