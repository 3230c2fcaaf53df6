"""Every path and method of the Placement API, with what each of them takes, gives and requires."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.http.route import Endpoint, Route
from moorage.placement.api import (
    aggregates,
    allocations,
    candidates,
    classes,
    counters,
    insight,
    inventories,
    memberships,
    openapi,
    providers,
    report,
    reshaper,
    root,
    schemas,
    traits,
    usages,
)
from moorage.placement.microversions import Microversion
from moorage.placement.service import PlacementService

R = Route[PlacementService]

RULE = "placement:"
_PROJECT_READER = "rule:admin_or_project_reader_or_service_api"
_FOR_AGENTS = frozenset(
    {
        "resource_classes:show",
        "resource_classes:update",
        "resource_providers:list",
        "resource_providers:create",
        "resource_providers:show",
        "resource_providers:update",
        "resource_providers:delete",
        "resource_providers:inventories:list",
        "resource_providers:inventories:update",
        "resource_providers:usages",
        "resource_providers:aggregates:list",
        "resource_providers:aggregates:update",
        "resource_providers:allocations:list",
        "resource_providers:traits:list",
        "resource_providers:traits:update",
        "allocations:list",
        "traits:list",
        "traits:show",
        "traits:update",
        "moorage:report",
        "moorage:aggregates:list",
        "moorage:aggregates:update",
    }
)
"""What `moorage-agent` asks for: nothing that claims, frees or looks for room."""


@dataclass(frozen=True)
class ServiceEndpoint(Endpoint[PlacementService]):
    """Administrators and other services may use most of this API; agents what they tell of their hosts."""

    check: str = "rule:admin_or_service_api"

    def __post_init__(self) -> None:
        if self.policy is not None and self.policy.removeprefix(RULE) in _FOR_AGENTS:
            object.__setattr__(self, "check", "rule:admin_or_service_or_agent_api")


E = ServiceEndpoint


API: tuple[R, ...] = (
    R("/", {"GET": E(root.home)}),
    R(
        "/resource_classes",
        {
            "GET": E(
                classes.index,
                f"{RULE}resource_classes:list",
                since=Microversion.CUSTOM_CLASSES,
                gives_json=True,
            ),
            "POST": E(
                classes.create,
                f"{RULE}resource_classes:create",
                since=Microversion.CUSTOM_CLASSES,
                body=schemas.NAME_CLASS,
            ),
        },
    ),
    R(
        "/resource_classes/{name}",
        {
            "GET": E(
                classes.show,
                f"{RULE}resource_classes:show",
                since=Microversion.CUSTOM_CLASSES,
                gives_json=True,
            ),
            "PUT": E(classes.update, f"{RULE}resource_classes:update", since=Microversion.CUSTOM_CLASSES),
            "DELETE": E(classes.delete, f"{RULE}resource_classes:delete", since=Microversion.CUSTOM_CLASSES),
        },
    ),
    R(
        "/resource_providers",
        {
            "GET": E(
                providers.index,
                f"{RULE}resource_providers:list",
                query=schemas.LIST_PROVIDERS,
                gives_json=True,
            ),
            "POST": E(providers.create, f"{RULE}resource_providers:create", body=schemas.CREATE_PROVIDER),
        },
    ),
    R(
        "/resource_providers/{uuid}",
        {
            "GET": E(providers.show, f"{RULE}resource_providers:show", gives_json=True),
            "DELETE": E(providers.delete, f"{RULE}resource_providers:delete"),
            "PUT": E(providers.update, f"{RULE}resource_providers:update", body=schemas.UPDATE_PROVIDER),
        },
    ),
    R(
        "/resource_providers/{uuid}/inventories",
        {
            "GET": E(inventories.index, f"{RULE}resource_providers:inventories:list", gives_json=True),
            "POST": E(
                inventories.create,
                f"{RULE}resource_providers:inventories:create",
                body=schemas.CREATE_INVENTORY,
            ),
            "PUT": E(
                inventories.replace,
                f"{RULE}resource_providers:inventories:update",
                body=schemas.SET_INVENTORIES,
            ),
            "DELETE": E(
                inventories.clear,
                f"{RULE}resource_providers:inventories:delete",
                since=Microversion.INVENTORIES_DELETED_AT_ONCE,
                before_that=405,
            ),
        },
    ),
    R(
        "/resource_providers/{uuid}/inventories/{resource_class}",
        {
            "GET": E(inventories.show, f"{RULE}resource_providers:inventories:show", gives_json=True),
            "PUT": E(
                inventories.update,
                f"{RULE}resource_providers:inventories:update",
                body=schemas.UPDATE_INVENTORY,
            ),
            "DELETE": E(inventories.delete, f"{RULE}resource_providers:inventories:delete"),
        },
    ),
    R(
        "/resource_providers/{uuid}/usages",
        {"GET": E(usages.of_provider, f"{RULE}resource_providers:usages", gives_json=True)},
    ),
    R(
        "/resource_providers/{uuid}/aggregates",
        {
            "GET": E(
                aggregates.index,
                f"{RULE}resource_providers:aggregates:list",
                since=Microversion.AGGREGATES,
                gives_json=True,
            ),
            "PUT": E(
                aggregates.replace,
                f"{RULE}resource_providers:aggregates:update",
                since=Microversion.AGGREGATES,
                body=schemas.SET_AGGREGATES,
            ),
        },
    ),
    R(
        "/resource_providers/{uuid}/allocations",
        {"GET": E(allocations.of_provider, f"{RULE}resource_providers:allocations:list", gives_json=True)},
    ),
    R(
        "/resource_providers/{uuid}/traits",
        {
            "GET": E(
                traits.of_provider,
                f"{RULE}resource_providers:traits:list",
                since=Microversion.TRAITS,
                gives_json=True,
            ),
            "PUT": E(
                traits.replace,
                f"{RULE}resource_providers:traits:update",
                since=Microversion.TRAITS,
                body=schemas.SET_TRAITS,
            ),
            "DELETE": E(traits.clear, f"{RULE}resource_providers:traits:delete", since=Microversion.TRAITS),
        },
    ),
    R(
        "/allocations",
        {
            "POST": E(
                allocations.manage,
                f"{RULE}allocations:manage",
                since=Microversion.SEVERAL_CONSUMERS,
                body=schemas.MANAGE_ALLOCATIONS,
            )
        },
    ),
    R(
        "/allocations/{consumer_uuid}",
        {
            "GET": E(allocations.of_consumer, f"{RULE}allocations:list", gives_json=True),
            "PUT": E(allocations.replace, f"{RULE}allocations:update", body=schemas.SET_ALLOCATIONS),
            "DELETE": E(allocations.delete, f"{RULE}allocations:delete"),
        },
    ),
    R(
        "/allocation_candidates",
        {
            "GET": E(
                candidates.index,
                f"{RULE}allocation_candidates:list",
                since=Microversion.CANDIDATES,
                query=schemas.LIST_CANDIDATES,
                gives_json=True,
            )
        },
    ),
    R(
        "/traits",
        {
            "GET": E(
                traits.index,
                f"{RULE}traits:list",
                since=Microversion.TRAITS,
                query=schemas.LIST_TRAITS,
                gives_json=True,
            )
        },
    ),
    R(
        "/traits/{name}",
        {
            "GET": E(traits.show, f"{RULE}traits:show", since=Microversion.TRAITS),
            "PUT": E(traits.create, f"{RULE}traits:update", since=Microversion.TRAITS),
            "DELETE": E(traits.delete, f"{RULE}traits:delete", since=Microversion.TRAITS),
        },
    ),
    R(
        "/usages",
        {
            "GET": E(
                usages.of_project,
                f"{RULE}usages",
                check=_PROJECT_READER,
                target=usages.project_named,
                since=Microversion.USAGES_OF_PROJECTS,
                query=schemas.LIST_USAGES,
                gives_json=True,
            )
        },
    ),
    R(
        "/reshaper",
        {
            "POST": E(
                reshaper.reshape,
                f"{RULE}reshaper:reshape",
                check="rule:service_or_agent_api",
                since=Microversion.RESHAPER,
                body=schemas.RESHAPE,
            )
        },
    ),
    R("/moorage/v1/providers", {"POST": E(report.put, f"{RULE}moorage:report", takes_json=True)}),
    R(
        "/moorage/v1/aggregates/members",
        {"POST": E(memberships.members, f"{RULE}moorage:aggregates:list", takes_json=True)},
    ),
    R(
        "/moorage/v1/aggregates/providers",
        {
            "POST": E(memberships.of_providers, f"{RULE}moorage:aggregates:list", takes_json=True),
            "PUT": E(memberships.replace, f"{RULE}moorage:aggregates:update", takes_json=True),
        },
    ),
    R("/moorage/v1/why", {"GET": E(insight.why, f"{RULE}moorage:why", gives_json=True)}),
    R(
        "/moorage/v1/counters",
        {
            "GET": E(counters.index, f"{RULE}moorage:counters:list", gives_json=True),
            "POST": E(counters.recount, f"{RULE}moorage:counters:update", takes_json=True),
        },
    ),
    R("/moorage/v1/capacity", {"GET": E(insight.capacity, f"{RULE}moorage:capacity", gives_json=True)}),
)

ROUTES = (*API, openapi.route(API))
