"""From the body of POST /servers to what is wanted: all is looked up and checked, nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import msgspec
from oslo_utils.uuidutils import is_uuid_like

from moorage.compute.errors import ComputeError, ForbiddenError, NotFoundError, UnavailableError
from moorage.compute.flavors.flavors import Flavor, FlavorNotFound
from moorage.compute.keypairs import keypairs
from moorage.compute.moves import destinations
from moorage.compute.moves.destinations import ANYWHERE, Destination
from moorage.compute.reference_cache import ReferenceSnapshot
from moorage.compute.servers import labels
from moorage.compute.servers.creation import CreationQuotas, ServerTemplate
from moorage.compute.servers.topology import require_topology
from moorage.compute_api import base64_fields
from moorage.compute_api.endpoint import RULE, own_project, visible_project
from moorage.compute_api.flavors.flavors import visible_to
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.ports import server_networks
from moorage.compute_api.schema_types import as_boolean
from moorage.compute_api.servers import injected_files
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.images.contract import Image, ImageNotFoundError, ImagesUnavailableError

Json = dict[str, Any]

FORCED_HOST = f"{RULE}servers:create:forced_host"
REQUESTED_DESTINATION = "compute:servers:create:requested_destination"
ATTACH_VOLUME = f"{RULE}servers:create:attach_volume"
ATTACH_NETWORK = f"{RULE}servers:create:attach_network"
TRUSTED_CERTS = f"{RULE}servers:create:trusted_certs"
ZERO_DISK = f"{RULE}servers:create:zero_disk_flavor"

_GIB = 1024**3


def read(service: ComputeService, call: Call, body: Json) -> tuple[ServerTemplate, CreationQuotas]:
    server = body["server"]
    hints = body.get("os:scheduler_hints") or body.get("OS-SCH-HNT:scheduler_hints") or {}
    least, most = _counts(server)
    _check_certificates(call, server)
    place = _place(call, server)
    devices = _devices(call, server)
    networks = _networks(call, server, most)
    base64_fields.check("user_data", server.get("user_data"))
    if server.get("hostname") and most > 1:
        raise ComputeError("Unable to allocate a single hostname to multiple instances")
    now = service.known.now()
    if place != ANYWHERE:
        with service.database.read() as connection:
            destinations.check(connection, place, service.zones_at(now))
    flavor = _flavor(now, call, server)
    public_key = _public_key(service, call, server.get("key_name"))
    bounds = _bounds(now, call)
    image = _image(service, call, server, flavor)
    require_topology(
        flavor.as_booted(), {} if image is None else image.properties, service.scheduler.pci_aliases
    )
    metadata = server.get("metadata", {})
    labels.require_few(metadata, bounds.project)
    injected_files.check(server.get("personality", ()), bounds.project)
    group = _group(hints)
    security_groups = _security_groups(server)
    agreed = server_networks.agree(service, call, networks, security_groups, most)
    wanted = ServerTemplate(
        name=server["name"].strip(),
        flavor=flavor.as_booted(),
        request={
            "networks": agreed.networks,
            "security_groups": security_groups,
            "security_group_ids": agreed.security_groups,
            "scheduler_hints": hints,
            "group": group,
            "host": place.host,
            "node": place.node,
            "forced": place.forced,
            "image": None if image is None else msgspec.to_builtins(image),
            "block_device": devices,
            "disk_config": server.get("OS-DCF:diskConfig", "MANUAL"),
            "public_key": public_key,
            "files": server.get("personality", []),
            "trusted_image_certificates": server.get("trusted_image_certificates"),
        },
        least=least,
        most=most,
        description=server.get("description")
        if call.version >= Microversion.SERVER_DESCRIPTIONS
        else server["name"].strip(),
        hostname=server.get("hostname"),
        image_ref="" if image is None else image.id,
        key_name=server.get("key_name"),
        user_data=server.get("user_data"),
        config_drive=as_boolean(server.get("config_drive", False))
        or service.settings.force_config_drive
        or _wants_config_drive(image),
        zone=place.zone,
        access_ip_v4=plain_address(server.get("accessIPv4", "")),
        access_ip_v6=plain_address(server.get("accessIPv6", "")),
        metadata=metadata,
        tags=tuple(sorted(set(server.get("tags", ())))),
        group=group,
    )
    return wanted, bounds


def _wants_config_drive(image: Image | None) -> bool:
    """An image may not do without."""
    return image is not None and image.properties.get("img_config_drive") == "mandatory"


def plain_address(text: str) -> str:
    """An address in its shortest spelling; none stays none."""
    return str(ip_address(text)) if text else ""


def _counts(server: Json) -> tuple[int, int]:
    least = int(server.get("min_count", 1))
    most = int(server.get("max_count", least))
    if least > most:
        raise ComputeError("min_count must be <= max_count")
    return least, most


def _check_certificates(call: Call, server: Json) -> None:
    if server.get("trusted_image_certificates"):
        call.authorize(TRUSTED_CERTS, own_project(call))


def _security_groups(server: Json) -> list[str]:
    names = [group["name"] for group in server.get("security_groups", ()) if group.get("name")]
    return sorted(set(names))


def _group(hints: Json) -> str | None:
    hint = hints.get("group")
    if isinstance(hint, list) and len(hint) == 1:
        hint = hint[0]
    if hint is not None and not is_uuid_like(hint):
        raise ComputeError("Server group scheduler hint must be a UUID.")
    return hint


# ---------------------------------------------------------------- where to


def _place(call: Call, server: Json) -> Destination:
    place = destinations.parse(server.get("availability_zone"))
    if place.forced:
        call.authorize(FORCED_HOST, own_project(call))
    host, node = server.get("host"), server.get("hypervisor_hostname")
    if not host and not node:
        return place
    call.authorize(REQUESTED_DESTINATION, own_project(call))
    if place.forced:
        raise ComputeError(
            "One mechanism with host and/or hypervisor_hostname and another mechanism "
            "with zone:host:node are mutually exclusive."
        )
    return Destination(place.zone, host, node)


# ---------------------------------------------------------------- what of


def _flavor(now: ReferenceSnapshot, call: Call, server: Json) -> Flavor:
    flavorid = str(server["flavorRef"]).rstrip("/").rpartition("/")[2]
    try:
        return now.flavor(flavorid, visible_to=visible_to(call))
    except FlavorNotFound as error:
        raise ComputeError(str(error)) from error


def _public_key(service: ComputeService, call: Call, name: str | None) -> str | None:
    """The key goes with the server: the pair may be deleted later."""
    if name is None:
        return None
    try:
        with service.database.read() as connection:
            return keypairs.find(connection, call.caller.user_id or "", name).public_key
    except NotFoundError as error:
        raise ComputeError("Invalid key_name provided.") from error


def _bounds(now: ReferenceSnapshot, call: Call) -> CreationQuotas:
    project_id, user_id = call.caller.project_id or "", call.caller.user_id or ""
    project, own = now.limits(project_id, user_id)
    return CreationQuotas(project, own or None)


def _image(service: ComputeService, call: Call, server: Json, flavor: Flavor) -> Image | None:
    reference = server.get("imageRef")
    if not reference:
        detail = "Invalid imageRef provided." if reference is not None else "Missing imageRef attribute"
        raise ComputeError(detail)
    try:
        image = service.images.find(reference, call.caller.token, visible_project(call))
    except ImageNotFoundError as error:
        raise ComputeError("Can not find requested image") from error
    except ImagesUnavailableError as error:
        raise UnavailableError("The image service does not answer. Try again later.") from error
    if image.status != "active":
        raise ComputeError(f"Image {image.id} is not active.")
    if image.min_ram > flavor.ram:
        raise ComputeError("Flavor's memory is too small for requested image.")
    if flavor.disk == 0:
        if not call.allows(ZERO_DISK, own_project(call)):
            raise ForbiddenError("Only volume-backed servers are allowed for flavors with zero disk.")
    elif image.min_disk > flavor.disk:
        raise ComputeError(
            "Flavor's disk is smaller than the minimum size specified in image metadata. Flavor disk is "
            f"{flavor.disk * _GIB} bytes, minimum size is {image.min_disk * _GIB} bytes."
        )
    return image


def _devices(call: Call, server: Json) -> Sequence[Json]:
    """Local disks are taken as they come; there are no volumes in this cloud."""
    old, new = server.get("block_device_mapping") or [], server.get("block_device_mapping_v2") or []
    if old and new:
        raise ComputeError(
            "Using different block_device_mapping syntaxes is not allowed in the same request."
        )
    if not old and not new:
        return []
    call.authorize(ATTACH_VOLUME, own_project(call))
    for device in old:
        raise _no_volume(device.get("volume_id") or device.get("snapshot_id"))
    for device in new:
        source = device.get("source_type")
        on_volume = device.get("destination_type") == "volume" or source in ("volume", "snapshot")
        if on_volume or device.get("volume_id") or device.get("snapshot_id"):
            raise _no_volume(device.get("uuid") or device.get("volume_id"))
        if source == "image" and device.get("uuid") != server.get("imageRef"):
            raise ComputeError(
                "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device "
                "mapping combination is not valid."
            )
    return list(new)


def _no_volume(volume: str | None) -> ComputeError:
    return ComputeError(f"Block Device Mapping is Invalid: failed to get volume {volume}.")


def _networks(call: Call, server: Json, most: int) -> str | list[Json]:
    given = server.get("networks")
    if given == "none":
        return "none"
    if not given:
        return "any"
    if given == "auto":
        call.authorize(ATTACH_NETWORK, own_project(call))
        return "auto"
    call.authorize(ATTACH_NETWORK, own_project(call))
    wanted = [_network(network) for network in given]
    ports = [one["port"] for one in wanted if one["port"]]
    for port in ports:
        if ports.count(port) > 1:
            raise ComputeError(
                f"Port ID '{port}' was specified twice: you cannot attach a port multiple times."
            )
    if most > 1:
        _check_many(wanted)
    return wanted


def _network(given: Json) -> Json:
    port, address = given.get("port"), given.get("fixed_ip")
    if port and address is not None:
        raise ComputeError(
            f"Specified Fixed IP '{address}' cannot be used with port '{port}': "
            "the two cannot be specified together."
        )
    if not port:
        if "uuid" not in given:
            raise ComputeError("Bad network format: missing 'uuid'")
        if not is_uuid_like(given["uuid"]):
            raise ComputeError(f"Bad networks format: network uuid is not in proper format ({given['uuid']})")
    uuid = None if port else given["uuid"]
    return {"uuid": uuid, "fixed_ip": address, "port": port, "tag": given.get("tag")}


def _check_many(wanted: Sequence[Json]) -> None:
    for network in wanted:
        if network["fixed_ip"]:
            raise ComputeError(
                "Failed to launch instances: max_count cannot be greater than 1 if an fixed_ip is specified."
            )
        if network["port"]:
            raise ComputeError(
                "Failed to launch instances: Unable to launch multiple instances with a single configured "
                "port ID. Please launch your instance one by one with different ports."
            )
