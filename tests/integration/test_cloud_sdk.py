"""openstacksdk on the cloud that `moorage up` makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openstack.compute.v2.server import Server
from openstack.connection import Connection
from openstack.exceptions import BadRequestException, ConflictException, ForbiddenException, NotFoundException

from tests.integration.embedded import embedded

IMAGE = "cirros-0.6.3-x86_64-disk"


@pytest.fixture(scope="module", params=["basic", "none"])
def sdk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    with embedded(tmp_path_factory.mktemp("cloud"), request.param) as cloud:
        yield cloud.connect()


def boot(sdk: Connection, name: str, **more: object) -> Server:
    image = sdk.image.find_image(IMAGE, ignore_missing=False)
    flavor = sdk.compute.find_flavor("m1.tiny", ignore_missing=False)
    return sdk.compute.create_server(
        name=name, image_id=image.id, flavor_id=flavor.id, networks="auto", **more
    )


def test_flavors(sdk: Connection) -> None:
    made = sdk.compute.create_flavor(name="sdk", ram=64, vcpus=1, disk=1, is_public=False)
    sdk.compute.create_flavor_extra_specs(made, {"hw:mem_page_size": "large"})
    assert sdk.compute.get_flavor(made.id, get_extra_specs=True).extra_specs == {"hw:mem_page_size": "large"}
    sdk.compute.flavor_add_tenant_access(made.id, "p1")
    assert [access["tenant_id"] for access in sdk.compute.get_flavor_access(made.id)] == ["p1"]
    with pytest.raises(ConflictException, match="sdk"):
        sdk.compute.create_flavor(name="sdk", ram=64, vcpus=1, disk=1)
    sdk.compute.delete_flavor(made.id, ignore_missing=False)
    assert sdk.compute.find_flavor("sdk") is None


def test_keys(sdk: Connection) -> None:
    public = sdk.compute.create_keypair(name="k", public_key=_PUBLIC)
    assert [key.name for key in sdk.compute.keypairs()] == ["k"]
    assert sdk.compute.get_keypair("k").fingerprint == public.fingerprint
    sdk.compute.delete_keypair("k", ignore_missing=False)
    with pytest.raises(NotFoundException):
        sdk.compute.get_keypair("k")


def test_groups_keep_servers_apart(sdk: Connection) -> None:
    group = sdk.compute.create_server_group(name="apart", policy="anti-affinity")
    hints = {"group": group.id}
    made = [boot(sdk, f"apart-{number}", scheduler_hints=hints) for number in range(3)]
    running = [sdk.compute.wait_for_server(server, wait=60) for server in made]
    assert len({server.compute_host for server in running}) == 3
    assert sorted(sdk.compute.get_server_group(group.id).member_ids) == sorted(
        server.id for server in running
    )
    for server in running:
        sdk.compute.delete_server(server)
    for server in running:
        sdk.compute.wait_for_delete(server, wait=60)
    sdk.compute.delete_server_group(group.id)


def test_hosts(sdk: Connection) -> None:
    services = sorted(sdk.compute.services(binary="nova-compute"), key=lambda service: service.host)
    assert {service.state for service in services} == {"up"}
    disabled = sdk.compute.disable_service(services[0], disabled_reason="snow")
    assert disabled is not None
    assert (disabled.status, disabled.disabled_reason) == ("disabled", "snow")
    enabled = sdk.compute.enable_service(services[0])
    assert enabled is not None
    assert enabled.status == "enabled"
    hypervisors = list(sdk.compute.hypervisors(details=True))
    assert sorted(one.name for one in hypervisors) == ["fake-1", "fake-2", "fake-3"]
    assert sdk.compute.get_hypervisor(hypervisors[0].id).hypervisor_type == "fake"
    zones = list(sdk.compute.availability_zones(details=True))
    assert "nova" in [zone.name for zone in zones]


def test_quotas_hold(sdk: Connection) -> None:
    first = boot(sdk, "within")
    project = sdk.compute.get_server(first.id).project_id
    sdk.compute.update_quota_set(project, instances=1)
    assert sdk.compute.get_quota_set(project).instances == 1
    with pytest.raises(ForbiddenException, match="Quota exceeded for instances"):
        boot(sdk, "beyond")
    sdk.compute.wait_for_server(first, wait=60)
    assert sdk.compute.get_quota_set(project, usage=True).usage["instances"] == 1
    sdk.compute.delete_server(first)
    sdk.compute.wait_for_delete(first, wait=60)
    sdk.compute.revert_quota_set(project)
    assert sdk.compute.get_quota_set(project).instances == 10


def test_limits_are_those_of_the_newest_version(sdk: Connection) -> None:
    """`openstack limits show` sends `reserved` as well, and is refused from 2.75 on, as by the reference."""
    limits = sdk.compute.get_limits().absolute
    assert (limits.instances, limits.total_cores) == (10, 20)
    with pytest.raises(BadRequestException, match="'reserved' was unexpected"):
        sdk.compute.get_limits(reserved=False)


def test_pages(sdk: Connection) -> None:
    """The SDK follows the links from page to page."""
    assert len(list(sdk.compute.flavors(limit=2))) == 5
    assert len(list(sdk.compute.hypervisors(limit=1))) == 3
    assert len(list(sdk.image.images(limit=1))) == 3


_PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAr9WcgBq3vYEaHVGy4bPYpIPTqYVbtF5kkDgyV1sXHS me@home"
