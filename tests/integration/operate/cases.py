"""For each alert, series with which it fires, and series with which it does not."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """Series, in the words of promtool, a value a minute, that make an alert fire after 40 minutes."""

    alert: str
    firing: dict[str, str]
    quiet: dict[str, str]
    labels: dict[str, str] = {}


UP = {'moorage_hosts{state="up"}': "3x60"}
"""Else the alert about conductors fires, too."""
_DOWN = 'moorage_hosts{state="down"}'
_REQUESTS = "moorage_http_requests_total"
_OPERATIONS = "moorage_conductor_operations_total"
_BUILD_SECONDS = "moorage_conductor_operation_seconds_bucket"
_HTTP_SECONDS = "moorage_http_request_seconds_bucket"
CASES = [
    Case("MoorageNoConductor", {'moorage_hosts{state="up"}': "3x10 stale"}, UP),
    Case(
        "MoorageHostsDown", {'moorage_hosts{state="down"}': "1x60"}, {'moorage_hosts{state="down"}': "0x60"}
    ),
    Case("MoorageHostsLate", {"moorage_hosts_lag_seconds": "50x60"}, {"moorage_hosts_lag_seconds": "20x60"}),
    Case(
        "MoorageOperationsStuck",
        {'moorage_operations_stuck{kind="build",step="spawned",why="slow"}': "2x60"},
        {'moorage_operations_stuck{kind="build",step="spawned",why="slow"}': "2x5 stale"},
        {"kind": "build", "step": "spawned", "why": "slow"},
    ),
    Case(
        "MoorageBuildsFail",
        {f'{_OPERATIONS}{{kind="build",outcome="{how}"}}': "0+1x60" for how in ("failed", "done")},
        {
            f'{_OPERATIONS}{{kind="build",outcome="failed"}}': "0+1x60",
            f'{_OPERATIONS}{{kind="build",outcome="done"}}': "0+9x60",
        },
    ),
    Case(
        "MoorageBootsSlow",
        {
            f'{_BUILD_SECONDS}{{kind="build",outcome="done",le="{bound}"}}': f"0+{count}x60"
            for bound, count in (("300", 0), ("1000", 10), ("+Inf", 10))
        },
        {
            f'{_BUILD_SECONDS}{{kind="build",outcome="done",le="{bound}"}}': f"0+{count}x60"
            for bound, count in (("300", 10), ("1000", 10), ("+Inf", 10))
        },
    ),
    Case(
        "MoorageApiFails",
        {
            f'moorage_http_requests_total{{service="compute",status="{status}"}}': "0+9x60"
            for status in (200, 500)
        },
        {
            f'moorage_http_requests_total{{service="compute",status="{status}"}}': "0+9x60"
            for status in (200, 404)
        },
        {"service": "compute"},
    ),
    Case(
        "MoorageApiSlow",
        {
            f'{_HTTP_SECONDS}{{service="compute",le="{bound}"}}': f"0+{count}x60"
            for bound, count in (("2.5", 90), ("5", 100), ("+Inf", 100))
        },
        {
            f'{_HTTP_SECONDS}{{service="compute",le="{bound}"}}': f"0+{count}x60"
            for bound, count in (("1", 100), ("2.5", 100), ("+Inf", 100))
        },
        {"service": "compute"},
    ),
    Case(
        "MoorageDatabaseUnreachable",
        {"moorage_conductor_outages_total": "0+1x60"},
        {"moorage_conductor_outages_total": "7x60"},
    ),
    Case(
        "MoorageDatabaseConnectionsUsedUp",
        {"moorage_db_connections_in_use": "20x60", "moorage_db_connections_most": "20x60"},
        {"moorage_db_connections_in_use": "19x60", "moorage_db_connections_most": "20x60"},
    ),
    Case(
        "MooragePlacementUnreachable",
        {"moorage_placement_client_retries_total": "0+5x60"},
        {"moorage_placement_client_retries_total": "0+1x60"},
    ),
    Case(
        "MoorageBrokerUnreachable",
        {"moorage_agent_heartbeat_failures_total": "0+6x60"},
        {"moorage_agent_heartbeat_failures_total": "6x60"},
    ),
    Case(
        "MoorageMessagesWait",
        {'moorage_bus_queue_messages{queue="conductors"}': "2000x60"},
        {
            'moorage_bus_queue_messages{queue="conductors"}': "200x60",
            'moorage_bus_queue_messages{queue="hosts"}': "2000x60",
        },
        {"queue": "conductors"},
    ),
    Case(
        "MoorageLeasesLost",
        {"moorage_conductor_fenced_total": "0+3x60"},
        {"moorage_conductor_fenced_total": "0+1x60"},
    ),
    Case(
        "MoorageAgentOverloaded",
        {'moorage_agent_tasks_waiting{host="rack-7"}': "80x60"},
        {'moorage_agent_tasks_waiting{host="rack-7"}': "8x60"},
        {"host": "rack-7"},
    ),
    Case(
        "MoorageDifferences",
        {'moorage_audit_differences{check="quotas"}': "1x60"},
        {'moorage_audit_differences{check="quotas"}': "0x30 1x30"},
        {"check": "quotas"},
    ),
    Case(
        "MoorageAggregatesNotMirrored",
        {"moorage_mirror_due_seconds": "0+60x60"},
        {"moorage_mirror_due_seconds": "200x60"},
    ),
    Case(
        "MoorageMachinesQuarantined",
        {"moorage_quarantined_machines": "1x60"},
        {"moorage_quarantined_machines": "1x20 0x40"},
    ),
    Case(
        "MoorageMachinesNotCleaned",
        {'moorage_ironic_nodes{partition="rack-a",state="clean failed"}': "1x60"},
        {'moorage_ironic_nodes{partition="rack-a",state="cleaning"}': "1x60"},
        {"partition": "rack-a"},
    ),
    Case(
        "MoorageLibvirtForgetsGuests",
        {'moorage_libvirt_guests_forgotten{instance="rack-7:9106"}': "1x60"},
        {'moorage_libvirt_guests_forgotten{instance="rack-7:9106"}': "1x3 0x57"},
        {"instance": "rack-7:9106"},
    ),
    Case(
        "MooragePartitionsOverlap",
        {"moorage_conductor_overlapping_partitions": "1x60"},
        {"moorage_conductor_overlapping_partitions": "0x60"},
    ),
    Case(
        "MoorageDatabaseWentBack",
        {"moorage_conductor_hosts_ahead": "2x60"},
        {"moorage_conductor_hosts_ahead": "0x60"},
    ),
    Case(
        "MoorageRestoreHeld",
        {"moorage_conductor_restore_held": "1x60"},
        {"moorage_conductor_restore_held": "1x20 0x40"},
    ),
    Case(
        "MoorageReleasesDiffer",
        {'moorage_conductor_unreadable_total{kind="juggle"}': "1+1x60"},
        {'moorage_conductor_unreadable_total{kind="juggle"}': "3x60"},
        {"kind": "juggle"},
    ),
    Case(
        "MoorageMessagesRefused",
        {'moorage_bus_refused_total{kind="heartbeat",reason="other_host"}': "0x30 1x30"},
        {'moorage_bus_refused_total{kind="heartbeat",reason="other_host"}': "3x60"},
        {"kind": "heartbeat", "reason": "other_host"},
    ),
    Case(
        "MoorageAgentsRefused",
        {'moorage_placement_agents_refused_total{reason="not_own"}': "0x30 1x30"},
        {'moorage_placement_agents_refused_total{reason="not_own"}': "3x60"},
        {"reason": "not_own"},
    ),
]
