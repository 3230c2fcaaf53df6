"""`moorage plan`: where servers would go, and why not elsewhere, without making any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from moorage.cli import service
from moorage.cli.errors import CommandError
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import ServiceType
from moorage.scheduler.plan import Plan, Planned
from moorage.scheduler.story import ranked, story
from moorage.scheduler.trace import Place


class ShownPlan(msgspec.Struct):
    """As the Compute API gives it."""

    plan: Plan


def plan(
    flavor: Annotated[str, typer.Option(help="The flavor, by its name or id.")],
    image: Annotated[str, typer.Option(help="The image, by its name or id.")],
    count: Annotated[int, typer.Option(min=1, max=1000, help="How many servers.")] = 1,
    zone: Annotated[
        str | None, typer.Option(help="The availability zone to be in.", show_default=False)
    ] = None,
    host: Annotated[str | None, typer.Option(help="The host to be on.", show_default=False)] = None,
    hint: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A scheduler hint; may be given more than once.", show_default=False
        ),
    ] = None,
    project: Annotated[
        str | None, typer.Option(help="The id of the project they are for.", show_default=False)
    ] = None,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Tell where servers would go, and why not, without creating or claiming anything.

    Each server of the plan sees what those before it would take.

    Example: moorage plan --flavor m1.small --image cirros-0.6.3-x86_64-disk --count 5
    """
    flavor_id, image_id = _ids(flavor, image, cloud, data)
    asked: dict[str, Any] = {"flavorRef": flavor_id, "imageRef": image_id, "count": count}
    optional = {"availability_zone": zone, "host": host, "project_id": project}
    asked |= {name: value for name, value in optional.items() if value is not None}
    body = {"plan": asked, "os:scheduler_hints": _hints(hint or ())}
    answer = service.put_to("/moorage-plan", body, cloud, data, ServiceType.COMPUTE)
    if as_json:
        typer.echo(answer)
        return
    for line in told(msgspec.json.decode(answer, type=ShownPlan).plan):
        typer.echo(line)


def _ids(flavor: str, image: str, cloud: str | None, data: Path) -> tuple[str, str]:
    with service.plain_words():
        connection = service.connect(cloud, data)
        flavor_id = _id("flavor", flavor, connection.compute.find_flavor)
        return flavor_id, _id("image", image, connection.image.find_image)


def _id(kind: str, name: str, find: Callable[..., Any]) -> str:
    from openstack.exceptions import NotFoundException

    try:
        return str(find(name, ignore_missing=False).id)
    except NotFoundException as error:
        raise CommandError(f"there is no {kind} {name}") from error


def _hints(given: Sequence[str]) -> dict[str, str | list[str]]:
    """A key that is given several times has a list of values."""
    found: dict[str, list[str]] = {}
    for hint in given:
        key, equals, value = hint.partition("=")
        if not (key and equals):
            raise CommandError(f"a hint is KEY=VALUE, not {hint!r}")
        found.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def told(plan: Plan) -> Iterator[str]:
    """A line for each server, the tally by host, and the whole story of the first that gets none."""
    yield f"{plan.placed()} of {len(plan.servers)} would get a host."
    yield from _server_lines(plan.servers)
    hosts = Counter(server.place.host for server in plan.servers if server.place is not None)
    if len(plan.servers) > 1 and hosts:
        yield "By host: " + ", ".join(f"{host} {count}" for host, count in hosts.most_common())
    refused = next((server for server in plan.servers if server.place is None), None)
    if refused is not None or len(plan.servers) == 1:
        yield ""
        yield story((refused or plan.servers[0]).trace)


def _server_lines(servers: Sequence[Planned]) -> Iterator[str]:
    """Neighbours that get no host for the same reason share a line."""
    for sentence, group in groupby(enumerate(servers, 1), key=lambda entry: entry[1].sentence):
        entries = list(group)
        if sentence is None:
            yield from (_placed_line(number, server) for number, server in entries)
            continue
        first, last = entries[0][0], entries[-1][0]
        yield f"{first}. {sentence}" if first == last else f"{first} to {last}. {sentence}"


def _placed_line(number: int, server: Planned) -> str:
    reserve = _listed(" in reserve: ", server.trace.alternates)
    equals = _listed(" as good: ", server.as_good())
    zone = f" in zone {server.zone}" if server.zone else ""
    return f"{ranked(number, server.trace.ranking[0])}{zone}{reserve}{equals}"


def _listed(heading: str, places: Sequence[Place]) -> str:
    return f";{heading}{', '.join(str(place) for place in places)}" if places else ""
