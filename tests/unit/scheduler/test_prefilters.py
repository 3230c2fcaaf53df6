"""Prefilters: each puts its condition into the query, or says that nothing can meet it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moorage.scheduler.errors import BadImagePropertyError, NoHostAllowedError
from moorage.scheduler.narrowing import NarrowedBy
from moorage.scheduler.prefilters.aggregate_images import AggregateImages
from moorage.scheduler.prefilters.availability_zone import AvailabilityZone
from moorage.scheduler.prefilters.contract import narrow
from moorage.scheduler.prefilters.enabled_hosts import EnabledHosts
from moorage.scheduler.prefilters.image_traits import ImageTraits
from moorage.scheduler.prefilters.isolated_aggregates import IsolatedAggregates
from moorage.scheduler.prefilters.only_machines import OnlyMachines
from moorage.scheduler.prefilters.only_targets import OnlyTargets
from moorage.scheduler.prefilters.tenant_isolation import TenantIsolation
from moorage.scheduler.request import TargetNodes, from_flavor
from moorage.scheduler.settings import SchedulerSettings
from tests.unit.scheduler.clouds import flavor, request, uuid

EAST, WEST, OURS = uuid(101), uuid(102), uuid(103)
ZONES = AvailabilityZone({"east": frozenset({EAST}), "west": frozenset({WEST})}, "nova")


def test_disabled_hosts_are_forbidden_by_the_trait_of_their_root() -> None:
    assert ("root_required", "!COMPUTE_STATUS_DISABLED") in EnabledHosts().narrow(request()).queries(50)[0]


def test_a_zone_is_its_aggregates() -> None:
    assert ("member_of", f"in:{EAST}") in ZONES.narrow(request(zone="east")).queries(50)[0]


def test_the_default_zone_is_all_that_is_in_no_other() -> None:
    assert ("member_of", f"!in:{EAST},{WEST}") in ZONES.narrow(request(zone="nova")).queries(50)[0]
    assert "member_of" not in dict(AvailabilityZone({}, "nova").narrow(request(zone="nova")).queries(50)[0])
    named_too = AvailabilityZone({"east": frozenset({EAST}), "nova": frozenset({OURS})}, "nova")
    assert ("member_of", f"!in:{EAST}") in named_too.narrow(request(zone="nova")).queries(50)[0]


def test_no_zone_asked_for_means_any() -> None:
    assert ZONES.narrow(request()) == request()


def test_a_zone_that_does_not_exist_has_no_hosts() -> None:
    with pytest.raises(NoHostAllowedError, match="zone 'north' has no hosts"):
        ZONES.narrow(request(zone="north"))


def test_a_project_with_aggregates_stays_in_them() -> None:
    isolation = TenantIsolation({"ours": frozenset({OURS})})
    assert ("member_of", f"in:{OURS}") in isolation.narrow(request(project_id="ours")).queries(50)[0]
    unconfined = TenantIsolation({"ours": frozenset({OURS})}, confined=False)
    assert unconfined.narrow(request(project_id="ours")) == request(project_id="ours")


def test_others_stay_out_of_the_aggregates_of_a_project() -> None:
    isolation = TenantIsolation({"ours": frozenset({OURS, EAST}), "both": frozenset({EAST})})
    assert ("member_of", f"!in:{EAST},{OURS}") in isolation.narrow(request(project_id="theirs")).queries(50)[
        0
    ]
    shared = isolation.narrow(request(project_id="both")).queries(50)[0]
    assert [value for name, value in shared if name == "member_of"] == [f"in:{EAST}", f"!in:{OURS}"]


def test_a_project_without_aggregates_may_be_kept_out() -> None:
    with pytest.raises(NoHostAllowedError):
        TenantIsolation({}, required=True).narrow(request(project_id="theirs"))


def test_an_isolated_aggregate_is_open_only_to_those_that_ask_for_all_its_traits() -> None:
    licensed = IsolatedAggregates({OURS: frozenset({"CUSTOM_LICENSED"})})
    asking = from_flavor(uuid(1), flavor(**{"trait:CUSTOM_LICENSED": "required"}))
    assert ("member_of", f"!in:{OURS}") in licensed.narrow(request()).queries(50)[0]
    assert licensed.narrow(asking) == asking
    stricter = IsolatedAggregates({OURS: frozenset({"CUSTOM_LICENSED", "CUSTOM_SECURE"})})
    assert ("member_of", f"!in:{OURS}") in stricter.narrow(asking).queries(50)[0]


def test_traits_that_the_image_asks_for_open_an_isolated_aggregate() -> None:
    licensed = IsolatedAggregates({OURS: frozenset({"CUSTOM_LICENSED"})})
    asked = narrow(request(), [ImageTraits({"trait:CUSTOM_LICENSED": "required"}), licensed])
    assert "member_of" not in dict(asked.queries(50)[0])


def test_an_aggregate_may_be_for_certain_images() -> None:
    taken = {OURS: {"os_distro": frozenset({"debian", "ubuntu"}), "hw_disk_bus": frozenset({"virtio"})}}
    for properties in ({}, {"os_distro": "debian"}, {"os_distro": "ubuntu", "hw_disk_bus": "virtio"}):
        assert AggregateImages(taken, properties).narrow(request()) == request()
    narrowed = AggregateImages(taken, {"os_distro": "windows", "hw_disk_bus": "virtio"}).narrow(request())
    assert ("member_of", f"!in:{OURS}") in narrowed.queries(50)[0]
    assert [(note.by, note.subject) for note in narrowed.narrowings] == [(NarrowedBy.IMAGE, "os_distro")]


def test_each_condition_is_noted_with_whom_it_is_for() -> None:
    isolation = TenantIsolation({"ours": frozenset({OURS}), "theirs": frozenset({WEST})})
    narrowed = narrow(request(zone="east", project_id="ours"), [ZONES, isolation])
    assert [(note.by, note.member_of, note.subject) for note in narrowed.narrowings] == [
        (NarrowedBy.ZONE, f"in:{EAST}", "east"),
        (NarrowedBy.OTHER_PROJECTS, f"!in:{WEST}", ""),
        (NarrowedBy.PROJECT, f"in:{OURS}", "ours"),
    ]


def test_traits_of_the_image_are_required() -> None:
    narrowed = ImageTraits({"trait:HW_CPU_X86_AVX2": "required", "os_distro": "debian"}).narrow(request())
    assert ("required", "HW_CPU_X86_AVX2") in narrowed.queries(50)[0]
    with pytest.raises(BadImagePropertyError, match="must be 'required', not 'forbidden'"):
        ImageTraits({"trait:HW_CPU_X86_AVX2": "forbidden"}).narrow(request())


def test_target_nodes_are_asked_for_as_trees() -> None:
    narrowed = OnlyTargets("host", TargetNodes((uuid(7), uuid(6)))).narrow(request())
    assert [dict(query)["in_tree"] for query in narrowed.queries(50)] == [uuid(7), uuid(6)]
    assert OnlyTargets(None, TargetNodes()).narrow(request()) == request()


def test_a_target_that_nothing_can_meet_is_told_before_anybody_is_asked() -> None:
    with pytest.raises(NoHostAllowedError, match="'host' has no nodes"):
        OnlyTargets("host", TargetNodes()).narrow(request())
    with pytest.raises(NoHostAllowedError, match="group or its hints"):
        OnlyTargets("host", TargetNodes((uuid(7),))).narrow(
            replace(request(), same_nodes=frozenset({uuid(8)}))
        )


def test_a_named_machine_is_asked_for_as_a_tree() -> None:
    narrowed = OnlyMachines(["rack-1"], frozenset({uuid(7)})).narrow(request())
    assert [dict(query)["in_tree"] for query in narrowed.queries(50)] == [uuid(7)]
    assert OnlyMachines([], frozenset()).narrow(request()) == request()
    with pytest.raises(NoHostAllowedError, match="There is no machine rack-1"):
        OnlyMachines(["rack-1"], frozenset()).narrow(request())
    with pytest.raises(NoHostAllowedError, match="rack-1 is not where"):
        OnlyMachines(["rack-1"], frozenset({uuid(7)})).narrow(
            replace(request(), targets=TargetNodes((uuid(8),)))
        )


def test_conditions_add_up_and_are_of_the_node_where_nothing_is_unsuffixed() -> None:
    specs = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    asked = from_flavor(uuid(1), flavor(**specs, **{"resources1:CUSTOM_BM": "1"}))
    isolation = TenantIsolation({"ours": frozenset({OURS})})
    narrowed = narrow(replace(asked, zone="east", project_id="ours"), [ZONES, isolation])
    assert narrowed.queries(50)[0][1:] == [
        ("resources1", "CUSTOM_BM:1"),
        ("member_of1", f"in:{EAST}"),
        ("member_of1", f"in:{OURS}"),
    ]


def test_devices_that_an_image_names_become_traits_of_the_node() -> None:
    properties = {"hw_disk_bus": "virtio", "hw_video_model": "qxl", "hw_vif_model": "unheard-of"}
    (narrowing,) = SchedulerSettings(require_image_hardware=True).image_hardware(properties)
    asked = dict(narrowing.narrow(request()).queries(5)[0])
    assert asked["required"] == "COMPUTE_GRAPHICS_MODEL_QXL,COMPUTE_STORAGE_BUS_VIRTIO"
    assert list(SchedulerSettings().image_hardware(properties)) == []
