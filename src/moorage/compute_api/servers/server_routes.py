"""The servers' part of the table of routes, and the rules that their handlers ask about by themselves."""

from __future__ import annotations

from oslo_policy import policy

from moorage.compute_api.endpoint import ADMIN, MANAGER, MEMBER, READER, RULE, SERVICE, Own, Owned, R
from moorage.compute_api.endpoint import AdminEndpoint as E
from moorage.compute_api.imaging import shelve_actions
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.moves import migrations, move_actions, move_schemas, plans, server_migrations
from moorage.compute_api.ports import external_events, interfaces, security_groups
from moorage.compute_api.servers import (
    instance_actions,
    rebuild_action,
    server_actions,
    server_body,
    server_extras,
    server_filters,
    server_metadata,
    server_passwords,
    server_schemas,
    server_tags,
    server_views,
    servers,
)
from moorage.http.rules import documented

_SERVER = "/servers/{server_id}"
_SERVERS = f"{RULE}servers:"
_METADATA = f"{RULE}server-metadata:"
_TAGS = f"{RULE}os-server-tags:"
_ACTIONS = f"{RULE}os-instance-actions:"
_MIGRATIONS = f"{RULE}servers:migrations:"
_INTERFACES = f"{RULE}os-attach-interfaces:"

ROUTES: tuple[R, ...] = (
    R(
        "/servers",
        {
            "GET": Own(servers.index, f"{_SERVERS}index", READER, no_query_since=None),
            "POST": Own(servers.create, f"{_SERVERS}create", MEMBER, body=server_schemas.CREATE),
        },
    ),
    R(
        "/servers/detail",
        {"GET": Own(servers.detail, f"{_SERVERS}detail", READER, no_query_since=None)},
    ),
    R(
        _SERVER,
        {
            "GET": Owned(servers.show, f"{_SERVERS}show", READER),
            "PUT": Owned(servers.update, f"{_SERVERS}update", MEMBER, body=server_schemas.UPDATE),
            "DELETE": Owned(servers.delete, f"{_SERVERS}delete", MEMBER),
        },
    ),
    R(f"{_SERVER}/action", {"POST": E(server_actions.act, takes_json=True)}),
    R(
        f"{_SERVER}/metadata",
        {
            "GET": Owned(server_metadata.index, f"{_METADATA}index", READER),
            "POST": Owned(server_metadata.add, f"{_METADATA}create", MEMBER, body=server_schemas.METADATA),
            "PUT": Owned(
                server_metadata.replace, f"{_METADATA}update_all", MEMBER, body=server_schemas.METADATA
            ),
        },
    ),
    R(
        f"{_SERVER}/metadata/{{key}}",
        {
            "GET": Owned(server_metadata.show, f"{_METADATA}show", READER),
            "PUT": Owned(
                server_metadata.set_item, f"{_METADATA}update", MEMBER, body=server_schemas.METADATA_ITEM
            ),
            "DELETE": Owned(server_metadata.delete, f"{_METADATA}delete", MEMBER),
        },
    ),
    R(
        f"{_SERVER}/tags",
        {
            "GET": Owned(server_tags.index, f"{_TAGS}index", READER, since=Microversion.SERVER_TAGS),
            "PUT": Owned(
                server_tags.replace,
                f"{_TAGS}update_all",
                MEMBER,
                since=Microversion.SERVER_TAGS,
                body=server_schemas.SET_TAGS,
            ),
            "DELETE": Owned(server_tags.clear, f"{_TAGS}delete_all", MEMBER, since=Microversion.SERVER_TAGS),
        },
    ),
    R(
        f"{_SERVER}/tags/{{tag}}",
        {
            "GET": Owned(server_tags.show, f"{_TAGS}show", READER, since=Microversion.SERVER_TAGS),
            "PUT": Owned(server_tags.add, f"{_TAGS}update", MEMBER, since=Microversion.SERVER_TAGS),
            "DELETE": Owned(server_tags.delete, f"{_TAGS}delete", MEMBER, since=Microversion.SERVER_TAGS),
        },
    ),
    R(
        f"{_SERVER}/os-instance-actions",
        {"GET": Owned(instance_actions.index, f"{_ACTIONS}list", READER, query=server_schemas.LIST_ACTIONS)},
    ),
    R(
        f"{_SERVER}/os-instance-actions/{{request_id}}",
        {"GET": Owned(instance_actions.show, f"{_ACTIONS}show", READER)},
    ),
    R(
        f"{_SERVER}/migrations",
        {
            "GET": Owned(
                server_migrations.index, f"{_MIGRATIONS}index", MANAGER, since=Microversion.SERVER_MIGRATIONS
            )
        },
    ),
    R(
        f"{_SERVER}/migrations/{{migration_id}}",
        {
            "GET": Owned(server_migrations.show, f"{_MIGRATIONS}show", since=Microversion.SERVER_MIGRATIONS),
            "DELETE": Owned(
                server_migrations.delete,
                f"{_MIGRATIONS}delete",
                MANAGER,
                since=Microversion.LIVE_MIGRATION_ABORTED,
            ),
        },
    ),
    R(
        f"{_SERVER}/migrations/{{migration_id}}/action",
        {
            "POST": Owned(
                server_migrations.act,
                f"{_MIGRATIONS}force_complete",
                MANAGER,
                since=Microversion.LIVE_MIGRATION_FORCED_TO_COMPLETE,
                body=move_schemas.FORCE_COMPLETE,
            )
        },
    ),
    R(
        "/os-migrations",
        {
            "GET": Own(
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
            "GET": Owned(interfaces.index, f"{_INTERFACES}list", READER),
            "POST": Owned(interfaces.create, f"{_INTERFACES}create", MEMBER, body=interfaces.CREATE),
        },
    ),
    R(
        f"{_SERVER}/os-interface/{{port_id}}",
        {
            "GET": Owned(interfaces.show, f"{_INTERFACES}show", READER),
            "DELETE": Owned(interfaces.delete, f"{_INTERFACES}delete", MEMBER),
        },
    ),
    R(
        f"{_SERVER}/os-security-groups",
        {"GET": Owned(security_groups.index, f"{RULE}os-security-groups:list", READER)},
    ),
    R(
        f"{_SERVER}/os-server-password",
        {
            "GET": Owned(server_passwords.show, f"{RULE}os-server-password:show", READER),
            "DELETE": Owned(server_passwords.clear, f"{RULE}os-server-password:clear", MEMBER),
        },
    ),
    R(
        f"{_SERVER}/shares",
        {
            "GET": Owned(
                server_extras.shares, f"{RULE}os-server-shares:index", READER, since=Microversion.SHARES
            ),
            "POST": Owned(
                server_extras.attach_share,
                f"{RULE}os-server-shares:create",
                MEMBER,
                since=Microversion.SHARES,
                body=server_schemas.ATTACH_SHARE,
            ),
        },
    ),
    R(
        f"{_SERVER}/shares/{{share_id}}",
        {
            "GET": Owned(
                server_extras.share, f"{RULE}os-server-shares:show", READER, since=Microversion.SHARES
            ),
            "DELETE": Owned(
                server_extras.detach_share,
                f"{RULE}os-server-shares:delete",
                MEMBER,
                since=Microversion.SHARES,
            ),
        },
    ),
    R(f"{_SERVER}/ips", {"GET": Owned(server_extras.addresses, f"{RULE}ips:index", READER)}),
    R(
        f"{_SERVER}/ips/{{network}}",
        {"GET": Owned(server_extras.network_addresses, f"{RULE}ips:show", READER)},
    ),
    R(
        f"{_SERVER}/os-volume_attachments",
        {
            "GET": Owned(
                server_extras.volumes,
                f"{RULE}os-volumes-attachments:index",
                READER,
                query=server_schemas.LIST_VOLUMES,
            )
        },
    ),
    R(f"{_SERVER}/moorage-trace", {"GET": Owned(server_extras.trace, "moorage:server-trace:show")}),
    R("/moorage-plan", {"POST": Owned(plans.create, "moorage:plan:create", body=plans.CREATE)}),
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


def _action(name: str) -> str:
    return f"POST {_SERVER}/action ({name})"


_LISTS = ("GET /servers", "GET /servers/detail")
_VIEWS = ("GET /servers/detail", f"GET {_SERVER}", f"PUT {_SERVER}", _action("rebuild"))
_ONE_ACTION = f"GET {_SERVER}/os-instance-actions/{{request_id}}"

RULES: tuple[policy.DocumentedRuleDefault, ...] = (
    documented(servers.INDEX_ALL, ADMIN, "List the servers of all projects.", "GET /servers"),
    documented(
        servers.DETAIL_ALL, ADMIN, "List the servers of all projects in detail.", "GET /servers/detail"
    ),
    documented(
        server_filters.ALL_FILTERS, ADMIN, "List servers by filters that tell about the cloud.", *_LISTS
    ),
    documented(
        server_views.EXTENDED_ATTRIBUTES,
        ADMIN,
        "See the host of a server, and what it is called there.",
        *_VIEWS,
    ),
    documented(server_views.SHOW_HOST_STATUS, ADMIN, "See how the host of a server is.", *_VIEWS),
    documented(
        server_views.SHOW_UNKNOWN_HOST, ADMIN, "See that nobody knows how the host of a server is.", *_VIEWS
    ),
    documented(server_views.SHOW_EXTRA_SPECS, READER, "See the extra specs of a server's flavor.", *_VIEWS),
    documented(
        server_body.FORCED_HOST,
        ADMIN,
        "Put a server on a host whatever the scheduler says.",
        "POST /servers",
    ),
    documented(server_body.REQUESTED_DESTINATION, ADMIN, "Ask the scheduler for one host.", "POST /servers"),
    documented(server_body.ATTACH_VOLUME, MEMBER, "Create a server with block devices.", "POST /servers"),
    documented(
        server_body.ATTACH_NETWORK, MEMBER, "Create a server on networks of one's choice.", "POST /servers"
    ),
    documented(
        server_body.TRUSTED_CERTS,
        MEMBER,
        "Create a server with trusted image certificates.",
        "POST /servers",
    ),
    documented(server_body.ZERO_DISK, ADMIN, "Create a server of a flavor without a disk.", "POST /servers"),
    documented(
        server_actions.UNLOCK_OVERRIDE,
        ADMIN,
        "Unlock a server that somebody else locked.",
        _action("unlock"),
    ),
    documented(
        rebuild_action.TRUSTED_CERTS,
        MEMBER,
        "Rebuild a server with trusted image certificates.",
        _action("rebuild"),
    ),
    documented(
        shelve_actions.UNSHELVE_TO_HOST,
        ADMIN,
        "Unshelve a server to a host of one's choice.",
        _action("unshelve"),
    ),
    documented(
        move_actions.MIGRATE_TO,
        ADMIN,
        "Migrate a server to a host of one's choice.",
        _action("migrate"),
    ),
    documented(
        move_actions.MIGRATE_LIVE_TO,
        ADMIN,
        "Migrate a server live to a host of one's choice.",
        _action("os-migrateLive"),
    ),
    documented(migrations.ALL_PROJECTS, ADMIN, "List the migrations of all projects.", "GET /os-migrations"),
    documented(
        migrations.HOSTS,
        ADMIN,
        "See in lists from where to where servers migrate, and list by it.",
        "GET /os-migrations",
    ),
    documented(
        server_migrations.HOSTS,
        ADMIN,
        "See from where to where a server migrates.",
        f"GET {_SERVER}/migrations",
    ),
    documented(instance_actions.EVENTS, ADMIN, "See all of an action's steps.", _ONE_ACTION),
    documented(instance_actions.DETAILS, ADMIN, "See why a step failed.", _ONE_ACTION),
    *(
        documented(action.policy, action.check, f"Ask a server to do '{name}'.", _action(name))
        for name, action in server_actions.ACTIONS.items()
    ),
)
"""Those that handlers ask about by themselves, once they know what the request is about."""
