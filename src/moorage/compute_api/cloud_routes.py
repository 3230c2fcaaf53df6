"""The part of the table of routes that is about the cloud and not about servers."""

from __future__ import annotations

from oslo_policy import policy

from moorage.compute_api import absent, extensions, schemas
from moorage.compute_api.endpoint import ADMIN, ANYBODY, MEMBER, READER, RULE, Own, Owned, R
from moorage.compute_api.endpoint import AdminEndpoint as E
from moorage.compute_api.flavors import flavor_access, flavor_specs, flavors
from moorage.compute_api.hosts import (
    aggregates,
    audit_log,
    audits,
    drains,
    hosts,
    hypervisors,
    rebalances,
    services,
    zones,
)
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.projects import keypairs, limits, quota_sets, server_groups, tenant_usage
from moorage.compute_api.servers import adoptions
from moorage.http.rules import documented

_SPECS = f"{RULE}os-flavor-extra-specs:"
_KEYS = f"{RULE}os-keypairs:"
_SERVICES = f"{RULE}os-services:"
_HYPERVISORS = f"{RULE}os-hypervisors:"
_AGGREGATES = f"{RULE}os-aggregates:"
_GROUPS = f"{RULE}os-server-groups:"
_QUOTAS = f"{RULE}os-quota-sets:"
_OS_HOSTS = f"{RULE}os-hosts:"
_AUDIT_LOG = f"{RULE}os-instance-usage-audit-log:"
_DRAINS = "moorage:drains:"
_REBALANCES = "moorage:rebalances:"
_USAGE = f"{RULE}os-simple-tenant-usage:"

FLAVORS: tuple[R, ...] = (
    R(
        "/flavors",
        {
            "GET": E(flavors.index, query=schemas.LIST_FLAVORS),
            "POST": E(flavors.create, f"{RULE}os-flavor-manage:create", body=schemas.CREATE_FLAVOR),
        },
    ),
    R("/flavors/detail", {"GET": E(flavors.detail, query=schemas.LIST_FLAVORS)}),
    R(
        "/flavors/{flavor_id}",
        {
            "GET": E(flavors.show),
            "PUT": E(
                flavors.update,
                f"{RULE}os-flavor-manage:update",
                since=Microversion.FLAVOR_DESCRIPTIONS,
                body=schemas.UPDATE_FLAVOR,
            ),
            "DELETE": E(flavors.delete, f"{RULE}os-flavor-manage:delete"),
        },
    ),
    R("/flavors/{flavor_id}/os-flavor-access", {"GET": Own(flavor_access.index, f"{RULE}os-flavor-access")}),
    R("/flavors/{flavor_id}/action", {"POST": E(flavor_access.act, body=schemas.FLAVOR_ACTION)}),
    R(
        "/flavors/{flavor_id}/os-extra_specs",
        {
            "GET": Own(flavor_specs.index, f"{_SPECS}index", check=READER),
            "POST": E(flavor_specs.create, f"{_SPECS}create", body=schemas.CREATE_SPECS),
        },
    ),
    R(
        "/flavors/{flavor_id}/os-extra_specs/{key}",
        {
            "GET": Own(flavor_specs.show, f"{_SPECS}show", check=READER),
            "PUT": E(flavor_specs.update, f"{_SPECS}update", body=schemas.UPDATE_SPEC),
            "DELETE": E(flavor_specs.delete, f"{_SPECS}delete"),
        },
    ),
)

KEYPAIRS: tuple[R, ...] = (
    R(
        "/os-keypairs",
        {
            "GET": E(
                keypairs.index,
                f"{_KEYS}index",
                check=keypairs.OWNER,
                target=keypairs.owner,
                query=schemas.LIST_KEYPAIRS,
            ),
            "POST": Owned(
                keypairs.create, f"{_KEYS}create", check=keypairs.OWNER, body=schemas.CREATE_KEYPAIR
            ),
        },
    ),
    R(
        "/os-keypairs/{name}",
        {
            "GET": E(
                keypairs.show,
                f"{_KEYS}show",
                check=keypairs.OWNER,
                target=keypairs.owner,
                query=schemas.ONE_KEYPAIR,
            ),
            "DELETE": E(
                keypairs.delete,
                f"{_KEYS}delete",
                check=keypairs.OWNER,
                target=keypairs.owner,
                query=schemas.ONE_KEYPAIR,
            ),
        },
    ),
)

HOSTS: tuple[R, ...] = (
    R("/os-services", {"GET": E(services.index, f"{_SERVICES}list", query=schemas.LIST_SERVICES)}),
    R(
        "/os-services/{service_id}",
        {
            "PUT": E(services.update, f"{_SERVICES}update", body=schemas.UPDATE_SERVICE),
            "DELETE": E(services.delete, f"{_SERVICES}delete"),
        },
    ),
    R(
        "/os-hypervisors",
        {"GET": E(hypervisors.index, f"{_HYPERVISORS}list", query=schemas.LIST_HYPERVISORS)},
    ),
    R(
        "/os-hypervisors/detail",
        {"GET": E(hypervisors.detail, f"{_HYPERVISORS}list-detail", query=schemas.LIST_HYPERVISORS)},
    ),
    R(
        "/os-hypervisors/statistics",
        {
            "GET": E(
                hypervisors.statistics,
                f"{_HYPERVISORS}statistics",
                dropped=Microversion.HYPERVISORS_WITHOUT_USAGE,
            )
        },
    ),
    R(
        "/os-hypervisors/{hypervisor_id}",
        {"GET": E(hypervisors.show, f"{_HYPERVISORS}show", query=schemas.SHOW_HYPERVISOR)},
    ),
    R(
        "/os-hypervisors/{hypervisor_id}/uptime",
        {
            "GET": E(
                hypervisors.uptime, f"{_HYPERVISORS}uptime", dropped=Microversion.HYPERVISORS_WITHOUT_USAGE
            )
        },
    ),
    R(
        "/os-hypervisors/{hypervisor_id}/search",
        {"GET": E(hypervisors.search, f"{_HYPERVISORS}search", dropped=Microversion.HOSTS_BY_UUID)},
    ),
    R(
        "/os-hypervisors/{hypervisor_id}/servers",
        {"GET": E(hypervisors.servers, f"{_HYPERVISORS}servers", dropped=Microversion.HOSTS_BY_UUID)},
    ),
    R(
        "/os-availability-zone",
        {"GET": E(zones.index, f"{RULE}os-availability-zone:list", check=ANYBODY)},
    ),
    R("/os-availability-zone/detail", {"GET": E(zones.detail, f"{RULE}os-availability-zone:detail")}),
)

_NO_HOSTS = Microversion.NO_OS_HOSTS
OLD_HOSTS: tuple[R, ...] = (
    R("/os-hosts", {"GET": E(hosts.index, f"{_OS_HOSTS}list", dropped=_NO_HOSTS, query=schemas.LIST_HOSTS)}),
    R(
        "/os-hosts/{host_name}",
        {
            "GET": E(hosts.show, f"{_OS_HOSTS}show", dropped=_NO_HOSTS),
            "PUT": E(hosts.update, f"{_OS_HOSTS}update", dropped=_NO_HOSTS, body=schemas.UPDATE_HOST),
        },
    ),
    *(
        R(f"/os-hosts/{{host_name}}/{word}", {"GET": E(hosts.power, f"{_OS_HOSTS}{rule}", dropped=_NO_HOSTS)})
        for word, rule in (("startup", "start"), ("shutdown", "shutdown"), ("reboot", "reboot"))
    ),
)

DRAINS: tuple[R, ...] = (
    R(
        "/moorage-drains",
        {
            "GET": E(drains.index, f"{_DRAINS}list", query=drains.LIST),
            "POST": E(drains.create, f"{_DRAINS}create", body=drains.CREATE),
        },
    ),
    R("/moorage-drains/plan", {"POST": E(drains.plan, f"{_DRAINS}plan", body=drains.CREATE)}),
    R("/moorage-drains/{drain_id}", {"GET": E(drains.show, f"{_DRAINS}show")}),
    R(
        "/moorage-drains/{drain_id}/action",
        {"POST": E(drains.act, f"{_DRAINS}cancel", body=drains.CANCEL)},
    ),
    R(
        "/moorage-rebalances",
        {"POST": E(rebalances.create, f"{_REBALANCES}create", body=rebalances.CREATE)},
    ),
    R(
        "/moorage-rebalances/plan",
        {"POST": E(rebalances.plan, f"{_REBALANCES}plan", body=rebalances.PLAN)},
    ),
)

AGGREGATES: tuple[R, ...] = (
    R(
        "/os-aggregates",
        {
            "GET": E(aggregates.index, f"{_AGGREGATES}index", query=schemas.LIST_AGGREGATES),
            "POST": E(aggregates.create, f"{_AGGREGATES}create", body=schemas.CREATE_AGGREGATE),
        },
    ),
    R(
        "/os-aggregates/{aggregate_id}",
        {
            "GET": E(aggregates.show, f"{_AGGREGATES}show", query=schemas.LIST_AGGREGATES),
            "PUT": E(aggregates.update, f"{_AGGREGATES}update", body=schemas.UPDATE_AGGREGATE),
            "DELETE": E(aggregates.delete, f"{_AGGREGATES}delete"),
        },
    ),
    R("/os-aggregates/{aggregate_id}/action", {"POST": E(aggregates.act, body=schemas.AGGREGATE_ACTION)}),
    R(
        "/os-aggregates/{aggregate_id}/images",
        {
            "POST": E(
                aggregates.cache_images,
                "compute:aggregates:images",
                since=Microversion.IMAGES_CACHED_AHEAD,
                body=schemas.CACHE_IMAGES,
            )
        },
    ),
)

GROUPS: tuple[R, ...] = (
    R(
        "/os-server-groups",
        {
            "GET": Own(server_groups.index, f"{_GROUPS}index", check=READER, query=schemas.LIST_GROUPS),
            "POST": Own(server_groups.create, f"{_GROUPS}create", check=MEMBER, body=schemas.CREATE_GROUP),
        },
    ),
    R(
        "/os-server-groups/{group_id}",
        {
            "GET": Owned(server_groups.show, f"{_GROUPS}show", check=READER),
            "DELETE": Owned(server_groups.delete, f"{_GROUPS}delete", check=MEMBER),
        },
    ),
)

QUOTAS: tuple[R, ...] = (
    R("/limits", {"GET": E(limits.index, f"{RULE}limits", check=ANYBODY, query=schemas.LIMITS)}),
    R(
        "/os-quota-sets/{project_id}",
        {
            "GET": E(
                quota_sets.show,
                f"{_QUOTAS}show",
                check=READER,
                target=quota_sets.project,
                query=schemas.QUOTA_USER,
            ),
            "PUT": E(
                quota_sets.update,
                f"{_QUOTAS}update",
                target=quota_sets.project,
                body=schemas.UPDATE_QUOTAS,
                query=schemas.QUOTA_USER,
            ),
            "DELETE": E(
                quota_sets.delete,
                f"{_QUOTAS}delete",
                target=quota_sets.project,
                query=schemas.QUOTA_USER,
            ),
        },
    ),
    R(
        "/os-quota-sets/{project_id}/detail",
        {
            "GET": E(
                quota_sets.detail,
                f"{_QUOTAS}detail",
                check=READER,
                target=quota_sets.project,
                query=schemas.QUOTA_USER,
            )
        },
    ),
    R(
        "/os-quota-sets/{project_id}/defaults",
        {"GET": E(quota_sets.defaults, f"{_QUOTAS}defaults", check=ANYBODY, target=quota_sets.project)},
    ),
    R(
        "/os-quota-class-sets/{name}",
        {
            "GET": E(quota_sets.show_class, f"{RULE}os-quota-class-sets:show"),
            "PUT": E(
                quota_sets.update_class,
                f"{RULE}os-quota-class-sets:update",
                body=schemas.UPDATE_QUOTA_CLASS,
            ),
        },
    ),
)

USAGE: tuple[R, ...] = (
    R(
        "/os-simple-tenant-usage",
        {"GET": E(tenant_usage.index, f"{_USAGE}list", query=schemas.LIST_USAGES)},
    ),
    R(
        "/os-simple-tenant-usage/{project_id}",
        {
            "GET": E(
                tenant_usage.show,
                f"{_USAGE}show",
                check=READER,
                target=tenant_usage.project,
                query=schemas.SHOW_USAGE,
            )
        },
    ),
    R("/os-instance_usage_audit_log", {"GET": E(audit_log.index, f"{_AUDIT_LOG}list")}),
    R("/os-instance_usage_audit_log/{before}", {"GET": E(audit_log.show, f"{_AUDIT_LOG}show")}),
)

EXTENSIONS: tuple[R, ...] = (
    R("/extensions", {"GET": E(extensions.index, f"{RULE}extensions", check=ANYBODY)}),
    R("/extensions/{alias}", {"GET": E(extensions.show, f"{RULE}extensions", check=ANYBODY)}),
)

AUDITS: tuple[R, ...] = (
    R("/moorage-audits", {"POST": E(audits.create, "moorage:audits:create", body=audits.CREATE)}),
    R("/moorage-audits/{audit_id}", {"GET": E(audits.show, "moorage:audits:show")}),
    R(
        "/moorage-adoptions",
        {"POST": E(adoptions.create, "moorage:adoptions:create", body=adoptions.CREATE)},
    ),
)

ABSENT: tuple[R, ...] = (
    *(
        R(
            path,
            {
                **dict.fromkeys(absent.GONE.get(path, ()), E(absent.gone)),
                **dict.fromkeys(absent.ELSEWHERE.get(path, ()), E(absent.elsewhere)),
            },
        )
        for path in {**absent.GONE, **absent.ELSEWHERE}
    ),
)

CLOUD: tuple[R, ...] = (
    *FLAVORS,
    *KEYPAIRS,
    *HOSTS,
    *OLD_HOSTS,
    *DRAINS,
    *AGGREGATES,
    *GROUPS,
    *QUOTAS,
    *USAGE,
    *EXTENSIONS,
    *AUDITS,
    *ABSENT,
)

CLOUD_RULES: tuple[policy.DocumentedRuleDefault, ...] = (
    documented(
        flavor_access.ADD,
        ADMIN,
        "Let a project use a private flavor.",
        "POST /flavors/{flavor_id}/action (addTenantAccess)",
    ),
    documented(
        flavor_access.REMOVE,
        ADMIN,
        "Stop a project from using a private flavor.",
        "POST /flavors/{flavor_id}/action (removeTenantAccess)",
    ),
    documented(
        flavors.SEES_SPECS,
        READER,
        "See the extra specs of flavors.",
        "GET /flavors/detail",
        "POST /flavors",
        "GET /flavors/{flavor_id}",
        "PUT /flavors/{flavor_id}",
    ),
    documented(
        f"{_AGGREGATES}add_host",
        ADMIN,
        "Add a host to an aggregate.",
        "POST /os-aggregates/{aggregate_id}/action (add_host)",
    ),
    documented(
        f"{_AGGREGATES}remove_host",
        ADMIN,
        "Remove a host from an aggregate.",
        "POST /os-aggregates/{aggregate_id}/action (remove_host)",
    ),
    documented(
        f"{_AGGREGATES}set_metadata",
        ADMIN,
        "Set the metadata of an aggregate.",
        "POST /os-aggregates/{aggregate_id}/action (set_metadata)",
    ),
    documented(
        server_groups.ALL_PROJECTS, ADMIN, "List server groups of all projects.", "GET /os-server-groups"
    ),
    documented(limits.OTHER_PROJECT, ADMIN, "Show the limits of another project.", "GET /limits"),
)
"""Those that handlers ask about by themselves, once they know what the request is about."""
