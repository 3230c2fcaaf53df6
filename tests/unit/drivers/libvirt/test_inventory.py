from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import os_traits
import pytest

from moorage.core import config
from moorage.core.config import ConfigError
from moorage.drivers.libvirt.host.inventory import HostInventory
from moorage.drivers.libvirt.host.options import OPTIONS
from moorage.drivers.libvirt.host.settings import GuestSettings, HostSettings
from tests.unit.drivers.libvirt.fake_hypervisor import SampleHypervisor


def _inventory(directory: Path, hypervisor: SampleHypervisor | None = None, **settings: Any) -> HostInventory:
    guests = GuestSettings(
        virt_type=settings.pop("virt_type", "qemu"),
        instances_path=directory,
        host_ip="192.0.2.7",
        cpu_mode=settings.pop("cpu_mode", "host-model"),
        tpm=settings.pop("tpm", False),
        cpu_features=settings.pop("cpu_features", ()),
    )
    found = hypervisor or SampleHypervisor()
    return HostInventory("h1", lambda: found, HostSettings(guests=guests, **settings), directory)


def test_a_plain_host_offers_processors_memory_and_disk(tmp_path: Path) -> None:
    node = _inventory(tmp_path, reserved_cpus=1, reserved_disk_mb=1500).node()
    assert set(node.inventories) == {"VCPU", "MEMORY_MB", "DISK_GB"}
    vcpu, memory, disk = (node.inventories[name] for name in ("VCPU", "MEMORY_MB", "DISK_GB"))
    assert (vcpu.total, vcpu.reserved, vcpu.max_unit, vcpu.allocation_ratio) == (2, 1, 2, 4.0)
    assert (memory.total, memory.reserved, memory.allocation_ratio) == (24_105, 512, 1.0)
    found = os.statvfs(tmp_path)
    assert (disk.total, disk.reserved) == (found.f_frsize * found.f_blocks // 1024**3, 2)


def test_the_hypervisor_list_is_told_what_the_host_is(tmp_path: Path) -> None:
    facts = _inventory(tmp_path).node().facts
    assert facts["host_ip"] == "192.0.2.7"
    assert facts["hypervisor_version"] == 7_002_022
    assert (facts["vcpus"], facts["memory_mb"]) == (2, 24_105)
    assert ["x86_64", "qemu", "hvm"] in facts["supported_instances"]
    assert facts["cpu_info"]["topology"] == {"cells": 1, "sockets": 1, "cores": 2, "threads": 1}
    assert "load average" in facts["uptime"]


def test_the_node_is_the_same_after_a_restart(tmp_path: Path) -> None:
    assert _inventory(tmp_path).node().uuid == _inventory(tmp_path).node().uuid


def test_a_spoilt_identity_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "compute_id").write_text("nonsense\n")
    with pytest.raises(ConfigError, match="no UUID"):
        _inventory(tmp_path)


def test_traits_are_those_of_guests_of_the_virt_type_in_use(tmp_path: Path) -> None:
    traits = set(_inventory(tmp_path).node().traits)
    assert {"HW_CPU_X86_AVX2", "HW_CPU_X86_SSE42", "HW_CPU_X86_AMD_SVM"} <= traits
    assert not {"HW_CPU_X86_SHA", "HW_CPU_X86_AVX512F"} & traits, "the host's, but not a guest's"
    assert {
        "COMPUTE_NODE",
        "COMPUTE_ARCH_X86_64",
        "COMPUTE_STORAGE_BUS_SATA",
        "COMPUTE_FIRMWARE_BIOS",
    } <= traits
    assert {"COMPUTE_GRAPHICS_MODEL_VIRTIO", "COMPUTE_NET_VIF_MODEL_VIRTIO"} <= traits
    assert traits <= set(os_traits.get_traits())


def test_a_guest_without_a_cpu_model_has_none_of_the_host_models_features(tmp_path: Path) -> None:
    assert "HW_CPU_X86_AVX2" not in _inventory(tmp_path, cpu_mode="none").node().traits


def test_features_that_the_operator_adds_or_takes_away_count(tmp_path: Path) -> None:
    traits = _inventory(tmp_path, cpu_features=("+pcid", "-avx2")).node().traits
    assert "HW_CPU_X86_INTEL_PCID" in traits
    assert "HW_CPU_X86_AVX2" not in traits


def test_a_tpm_that_can_only_be_passed_through_is_offered_to_nobody(tmp_path: Path) -> None:
    assert not any("TPM" in trait for trait in _inventory(tmp_path, tpm=True).node().traits)


def test_a_virt_type_that_libvirt_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="virt_type"):
        _inventory(tmp_path, virt_type="lxc").node()


def test_processors_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not there: 7-8"):
        _inventory(tmp_path, cpu_shared_set=frozenset({1, 7, 8})).node()


def test_libvirt_is_not_asked_each_time_for_what_hardly_changes(tmp_path: Path) -> None:
    hypervisor = SampleHypervisor()
    inventory = _inventory(tmp_path, hypervisor)
    assert inventory.node() == inventory.node()
    assert hypervisor.asked == 1


def test_settings_come_from_the_fields_own_options(tmp_path: Path) -> None:
    file = tmp_path / "moorage.conf"
    file.write_text("[compute]\ncpu_dedicated_set = 2-3\nreserved_host_memory_mb = 1024\n")
    guests = GuestSettings(virt_type="qemu", instances_path=tmp_path)
    settings = HostSettings.from_conf(config.read([str(file)], [OPTIONS]), guests)
    assert settings.cpu_dedicated_set == {2, 3}
    assert settings.reserved_memory_mb == 1024


@pytest.mark.parametrize("text", ["cpu_shared_set = 1-x", "cpu_shared_set = 1-3\ncpu_dedicated_set = 3"])
def test_sets_that_make_no_sense_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "moorage.conf"
    file.write_text(f"[compute]\n{text}\n")
    with pytest.raises(ConfigError, match="cpu_shared_set"):
        HostSettings.from_conf(
            config.read([str(file)], [OPTIONS]), GuestSettings(virt_type="qemu", instances_path=tmp_path)
        )
