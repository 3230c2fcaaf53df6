"""`moorage image`: put images into a cloud, and list them, by the Image API."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from moorage.cli.commands import image_source
from moorage.cli.commands.image_source import Checksum, LocalSource
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import ServiceType, adapter, reason
from moorage.images.contract import ImagesUnavailableError
from moorage.images.link import PATCH_TYPE, ImageLink

image = Commands(help="The images of a cloud.\n\nExample: moorage image list")

_OWN_WORDS = {"id", "name", "status", "size", "disk_format", "visibility", "owner", "checksum"}


@image.command()
def add(
    name: Annotated[str, typer.Argument(help="What it shall be called.")],
    file: Annotated[Path | None, typer.Option(help="The file with its data.", show_default=False)] = None,
    url: Annotated[str | None, typer.Option(help="Where its data is.", show_default=False)] = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="Fetch the data of the URL now, and put it into the cloud.")
    ] = False,
    checksum: Annotated[
        str | None,
        typer.Option(help="What the data has to be, as sha512:… or sha256:…", show_default=False),
    ] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="May be given more than once.")
    ] = None,
    disk_format: Annotated[
        str | None, typer.Option(help="By default, what the data looks like.", show_default=False)
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="For its project, and nobody else.")] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="For its project, and for others that become its members.")
    ] = False,
    project: Annotated[
        str | None,
        typer.Option(help="The id of the project that it is of; by default, yours.", show_default=False),
    ] = None,
    cloud: Cloud = None,
    data: Data = Path("data"),
) -> None:
    """Put an image into a cloud: a file, or a URL for drivers whose machines fetch images themselves.

    It is for everybody, unless --private or --shared says otherwise.
    A URL that is not copied needs a checksum, which is held against what the machine gets.

    Example: moorage image add debian --file debian-12-generic-amd64.qcow2 --property os_distro=debian
    """
    if (file is None) == (url is None):
        raise CommandError("give either --file or --url")
    if private and shared:
        raise CommandError("give either --private or --shared")
    wanted = Checksum.read(checksum) if checksum is not None else None
    record = {
        **_properties(properties or []),
        "name": name,
        "container_format": "bare",
        "visibility": "private" if private else "shared" if shared else "public",
        **({} if project is None else {"owner": project}),
    }
    link = ImageLink(adapter(cloud, data, ServiceType.IMAGE))
    if url is not None and not copy:
        if wanted is None:
            raise CommandError("a URL that is not copied needs a --checksum")
        record["disk_format"] = disk_format or image_source.format_of_name(url)
        made = _made(link, record, partial(_locate, link, url, wanted))
    else:
        source = image_source.opened(file) if file is not None else image_source.fetched(url or "")
        with source as local:
            local.check(wanted)
            record["disk_format"] = disk_format or local.disk_format
            made = _made(link, record, partial(_send, link, local))
    typer.echo(f"{name}: {made}")


@image.command("list")
def list_images(
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """List the images that you see.

    Example: moorage image list --json
    """
    link = ImageLink(adapter(cloud, data, ServiceType.IMAGE))
    try:
        found = list(link.listed({"sort_key": "name", "sort_dir": "asc"}))
    except ImagesUnavailableError as error:
        raise CommandError(str(error)) from error
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
        return
    columns = ("id", "name", "status", "MiB", "format", "for", "checksum")
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for told in found:
        table.add_row(*_row(told))
    Console(highlight=False, soft_wrap=True).print(table)


def _row(told: dict[str, Any]) -> tuple[str, ...]:
    size = "" if told.get("size") is None else f"{told['size'] / 2**20:.1f}"
    checksum = (
        f"{told['os_hash_algo']}:{told['os_hash_value'][:12]}…" if told.get("os_hash_value") else "no data"
    )
    shape = told.get("disk_format") or ""
    return told["id"], told["name"] or "", told["status"], size, shape, told["visibility"], checksum


def _properties(given: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    for key, sign, _ in pairs:
        if not (key and sign):
            raise CommandError(f"can't read the property {key!r}; for example: --property hw_disk_bus=scsi")
    taken = next((key for key, _, _ in pairs if key in _OWN_WORDS), None)
    if taken is not None:
        raise CommandError(f"{taken} is no property of an image")
    return {key: value for key, _, value in pairs}


def _made(link: ImageLink, record: dict[str, str], fill: Callable[[str], None]) -> str:
    """The id of an image that has its data; who fails leaves no record behind that will never have any."""
    image_id: str = _asked(link, "POST", "/images", json=record).json()["id"]
    try:
        fill(image_id)
    except BaseException:
        link.request("DELETE", f"/images/{image_id}")
        raise
    return image_id


def _send(link: ImageLink, source: LocalSource, image_id: str) -> None:
    with source.shown("sending") as body:
        headers = {"Content-Type": "application/octet-stream"}
        _asked(link, "PUT", f"/images/{image_id}/file", headers=headers, data=body)


def _locate(link: ImageLink, url: str, checksum: Checksum, image_id: str) -> None:
    data = {"os_hash_algo": checksum.algorithm, "os_hash_value": checksum.value}
    step = {
        "op": "add",
        "path": "/locations/-",
        "value": {"url": url, "metadata": {}, "validation_data": data},
    }
    headers = {"Content-Type": PATCH_TYPE}
    _asked(link, "PATCH", f"/images/{image_id}", headers=headers, data=msgspec.json.encode([step]))


def _asked(link: ImageLink, method: str, path: str, **options: Any) -> Any:
    try:
        answer = link.request(method, path, **options)
    except ImagesUnavailableError as error:
        raise CommandError(f"the Image service can't be reached: {error}") from error
    if answer.status_code >= 300:
        raise CommandError(f"the Image service answered {answer.status_code}: {reason(answer)}")
    return answer
