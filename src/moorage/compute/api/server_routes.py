"""The servers' part of the table of routes, and the rules that their handlers ask about by themselves."""

from __future__ import annotations

from oslo_policy import policy

from moorage.compute.api import (
    external_events,
    instance_actions,
    interfaces,
    migrations,
    move_actions,
    move_schemas,
    plans,
    rebuild_action,
    server_actions,
    server_body,
    server_extras,
    server_filters,
    server_metadata,
    server_migrations,
    server_schemas,
    server_tags,
    server_views,
    servers,
)
from moorage.compute.api.endpoint import ADMIN, MANAGER, MEMBER, READER, RULE, SERVICE, E, R

_SERVER = "/servers/{server_id}"
_SERVERS = f"{RULE}servers:"
_METADATA = f"{RULE}server-metadata:"
_TAGS = f"{RULE}os-server-tags:"
_ACTIONS = f"{RULE}os-instance-actions:"
_MIGRATIONS = f"{RULE}servers:migrations:"
_INTERFACES = f"{RULE}os-attach-interfaces:"
_TAGS_SINCE = (2, 26)

ROUTES: tuple[R, ...] = (
    R(
        "/servers",
        {
            "GET": E(servers.index, f"{_SERVERS}index", READER),
            "POST": E(servers.create, f"{_SERVERS}create", MEMBER, body=server_schemas.CREATE),
        },
    ),
    R("/servers/detail", {"GET": E(servers.detail, f"{_SERVERS}detail", READER)}),
    R(
        _SERVER,
        {
            "GET": E(servers.show, f"{_SERVERS}show", READER),
            "PUT": E(servers.update, f"{_SERVERS}update", MEMBER, body=server_schemas.UPDATE),
            "DELETE": E(servers.delete, f"{_SERVERS}delete", MEMBER),
        },
    ),
    R(f"{_SERVER}/action", {"POST": E(server_actions.act, takes_json=True)}),
    R(
        f"{_SERVER}/metadata",
        {
            "GET": E(server_metadata.index, f"{_METADATA}index", READER),
            "POST": E(server_metadata.add, f"{_METADATA}create", MEMBER, body=server_schemas.METADATA),
            "PUT": E(server_metadata.replace, f"{_METADATA}update_all", MEMBER, body=server_schemas.METADATA),
        },
    ),
    R(
        f"{_SERVER}/metadata/{{key}}",
        {
            "GET": E(server_metadata.show, f"{_METADATA}show", READER),
            "PUT": E(
                server_metadata.set_item, f"{_METADATA}update", MEMBER, body=server_schemas.METADATA_ITEM
            ),
            "DELETE": E(server_metadata.delete, f"{_METADATA}delete", MEMBER),
        },
    ),
    R(
        f"{_SERVER}/tags",
        {
            "GET": E(server_tags.index, f"{_TAGS}index", READER, since=_TAGS_SINCE),
            "PUT": E(
                server_tags.replace,
                f"{_TAGS}update_all",
                MEMBER,
                since=_TAGS_SINCE,
                body=server_schemas.SET_TAGS,
            ),
            "DELETE": E(server_tags.clear, f"{_TAGS}delete_all", MEMBER, since=_TAGS_SINCE),
        },
    ),
    R(
        f"{_SERVER}/tags/{{tag}}",
        {
            "GET": E(server_tags.show, f"{_TAGS}show", READER, since=_TAGS_SINCE),
            "PUT": E(server_tags.add, f"{_TAGS}update", MEMBER, since=_TAGS_SINCE),
            "DELETE": E(server_tags.delete, f"{_TAGS}delete", MEMBER, since=_TAGS_SINCE),
        },
    ),
    R(
        f"{_SERVER}/os-instance-actions",
        {"GET": E(instance_actions.index, f"{_ACTIONS}list", READER, query=server_schemas.LIST_ACTIONS)},
    ),
    R(
        f"{_SERVER}/os-instance-actions/{{request_id}}",
        {"GET": E(instance_actions.show, f"{_ACTIONS}show", READER)},
    ),
    R(
        f"{_SERVER}/migrations",
        {"GET": E(server_migrations.index, f"{_MIGRATIONS}index", MANAGER, since=(2, 23))},
    ),
    R(
        f"{_SERVER}/migrations/{{migration_id}}",
        {
            "GET": E(server_migrations.show, f"{_MIGRATIONS}show", since=(2, 23)),
            "DELETE": E(server_migrations.delete, f"{_MIGRATIONS}delete", MANAGER, since=(2, 24)),
        },
    ),
    R(
        f"{_SERVER}/migrations/{{migration_id}}/action",
        {
            "POST": E(
                server_migrations.act,
                f"{_MIGRATIONS}force_complete",
                MANAGER,
                since=(2, 22),
                body=move_schemas.FORCE_COMPLETE,
            )
        },
    ),
    R(
        "/os-migrations",
        {
            "GET": E(
                migrations.index,
                f"{RULE}os-migrations:index",
                MANAGER,
                query=move_schemas.LIST_MIGRATIONS,
            )
        },
    ),
    R(
        f"{_SERVER}/os-interface",
        {
            "GET": E(interfaces.index, f"{_INTERFACES}list", READER),
            "POST": E(interfaces.create, f"{_INTERFACES}create", MEMBER, body=interfaces.CREATE),
        },
    ),
    R(
        f"{_SERVER}/os-interface/{{port_id}}",
        {
            "GET": E(interfaces.show, f"{_INTERFACES}show", READER),
            "DELETE": E(interfaces.delete, f"{_INTERFACES}delete", MEMBER),
        },
    ),
    R(f"{_SERVER}/ips", {"GET": E(server_extras.addresses, f"{RULE}ips:index", READER)}),
    R(f"{_SERVER}/ips/{{network}}", {"GET": E(server_extras.network_addresses, f"{RULE}ips:show", READER)}),
    R(f"{_SERVER}/diagnostics", {"GET": E(server_extras.unsupported, f"{RULE}os-server-diagnostics")}),
    R(
        f"{_SERVER}/os-volume_attachments",
        {"GET": E(server_extras.volumes, f"{RULE}os-volumes-attachments:index", READER)},
    ),
    R(
        f"{_SERVER}/remote-consoles",
        {"POST": E(server_extras.unsupported, f"{RULE}os-remote-consoles", MEMBER, since=(2, 6))},
    ),
    R(f"{_SERVER}/moorage-trace", {"GET": E(server_extras.trace, "moorage:server-trace:show")}),
    R("/moorage-plan", {"POST": E(plans.create, "moorage:plan:create", body=plans.CREATE)}),
    R(
        "/os-server-external-events",
        {
            "POST": E(
                external_events.create,
                f"{RULE}os-server-external-events:create",
                SERVICE,
                body=server_schemas.EXTERNAL_EVENTS,
            )
        },
    ),
)

_ASKED_BY_HANDLERS: tuple[tuple[str, str, str], ...] = (
    (servers.INDEX_ALL, ADMIN, "List the servers of all projects."),
    (servers.DETAIL_ALL, ADMIN, "List the servers of all projects in detail."),
    (server_filters.ALL_FILTERS, ADMIN, "List servers by filters that tell about the cloud."),
    (server_views.EXTENDED_ATTRIBUTES, ADMIN, "See the host of a server, and what it is called there."),
    (server_views.SHOW_HOST_STATUS, ADMIN, "See how the host of a server is."),
    (server_views.SHOW_UNKNOWN_HOST, ADMIN, "See that nobody knows how the host of a server is."),
    (server_views.SHOW_EXTRA_SPECS, READER, "See the extra specs of a server's flavor."),
    (server_body.FORCED_HOST, ADMIN, "Put a server on a host whatever the scheduler says."),
    (server_body.REQUESTED_DESTINATION, ADMIN, "Ask the scheduler for one host."),
    (server_body.ATTACH_VOLUME, MEMBER, "Create a server with block devices."),
    (server_body.ATTACH_NETWORK, MEMBER, "Create a server on networks of one's choice."),
    (server_body.TRUSTED_CERTS, MEMBER, "Create a server with trusted image certificates."),
    (server_body.ZERO_DISK, ADMIN, "Create a server of a flavor without a disk."),
    (server_actions.UNLOCK_OVERRIDE, ADMIN, "Unlock a server that somebody else locked."),
    (rebuild_action.TRUSTED_CERTS, MEMBER, "Rebuild a server with trusted image certificates."),
    (move_actions.MIGRATE_TO, ADMIN, "Migrate a server to a host of one's choice."),
    (move_actions.MIGRATE_LIVE_TO, ADMIN, "Migrate a server live to a host of one's choice."),
    (migrations.ALL_PROJECTS, ADMIN, "List the migrations of all projects."),
    (migrations.HOSTS, ADMIN, "See in lists from where to where servers migrate."),
    (server_migrations.HOSTS, ADMIN, "See from where to where a server migrates."),
    (instance_actions.EVENTS, ADMIN, "See all of an action's steps."),
    (instance_actions.DETAILS, ADMIN, "See why a step failed."),
    *(
        (action.policy, action.check, f"Ask a server to do '{name}'.")
        for name, action in server_actions.ACTIONS.items()
    ),
)

RULES: tuple[policy.RuleDefault, ...] = tuple(
    policy.RuleDefault(name, check, description) for name, check, description in _ASKED_BY_HANDLERS
)
