from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.drivers.libvirt.host.guest_hardware import parse_cpu_features, parse_domain_capabilities
from moorage.drivers.libvirt.host.machine import parse_capabilities
from moorage.topology.cpu_set import format_cpu_set, parse_cpu_set
from tests.unit.drivers.libvirt.fake_hypervisor import sample


def test_a_machine_with_one_cell_is_read_as_libvirt_tells_it() -> None:
    machine = parse_capabilities(sample("capabilities_one_cell"))
    (cell,) = machine.cells
    assert (machine.architecture, machine.cpu_vendor) == ("x86_64", "AMD")
    assert machine.cpu_ids == {0, 1}
    assert cell.pages == {4: 1_792_567, 2048: 0, 1_048_576: 0}
    assert not machine.has_hyperthreading
    emulators = {emulator.architecture: emulator for emulator in machine.emulators}
    assert emulators["x86_64"].machines["q35"] == "pc-q35-7.2"
    assert emulators["x86_64"].virt_types == {"qemu", "kvm"}


def test_threads_of_a_core_know_each_other() -> None:
    machine = parse_capabilities(sample("capabilities_two_cells"))
    assert [cell.cpu_ids for cell in machine.cells] == [
        {0, 1, 2, 3, 8, 9, 10, 11},
        {4, 5, 6, 7, 12, 13, 14, 15},
    ]
    assert machine.has_hyperthreading
    assert {cpu.id: cpu.siblings for cpu in machine.cells[1].cpus}[12] == {4, 12}


def test_a_processor_that_is_off_line_is_not_there() -> None:
    off_line = sample("capabilities_one_cell").replace(
        "id='1' socket_id='0' die_id='0' core_id='1' siblings='1'", "id='1'"
    )
    assert parse_capabilities(off_line).cpu_ids == {0}


def test_guests_have_the_devices_of_the_virt_type_in_use() -> None:
    hardware = parse_domain_capabilities(sample("domcapabilities_qemu_q35"))
    assert (hardware.virt_type, hardware.machine) == ("qemu", "pc-q35-7.2")
    assert hardware.disk_buses == {"fdc", "scsi", "virtio", "usb", "sata"}
    assert "EPYC" in hardware.host_model
    assert "EPYC" not in parse_domain_capabilities(sample("domcapabilities_kvm_q35")).host_model


def test_a_disabled_feature_is_none() -> None:
    features = parse_cpu_features(sample("cpu_qemu_host_model"))
    assert {"avx2", "sse4.2"} <= features
    assert "sha-ni" not in features


def test_a_cpu_set_may_take_some_away_again() -> None:
    assert parse_cpu_set("4-12,^8,15") == {4, 5, 6, 7, 9, 10, 11, 12, 15}
    assert parse_cpu_set("") == frozenset()


@pytest.mark.parametrize("text", ["a", "3-1", "1,,x", "-1", "1-"])
def test_what_is_no_cpu_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_cpu_set(text)


@given(st.frozensets(st.integers(0, 200)))
def test_a_cpu_set_is_read_as_it_was_written(cpus: frozenset[int]) -> None:
    assert parse_cpu_set(format_cpu_set(cpus)) == cpus
