"""The microversions of the Compute API: the one table, from which `make microversions` writes a page.

For example: python -m moorage.compute_api.microversions > docs/compute/microversions.md
"""

from __future__ import annotations

from moorage.core.microversions import Since, VersionTable, text


class Microversion(VersionTable):
    FIRST = Since((2, 1), "what the API could when microversions began")
    KEYPAIR_TYPES = Since(
        (2, 2), "key pairs have a type; creating one is answered with 201, deleting it with 204"
    )
    EXTENDED_ATTRIBUTES = Since(
        (2, 3), "administrators see a server's hostname, launch index, root device and user data"
    )
    RESERVED_FIXED_IPS = Since((2, 4), "fixed addresses say whether they are reserved")
    SERVERS_BY_IPV6 = Since((2, 5), "everybody lists servers by IPv6 address (`ip6`)")
    REMOTE_CONSOLES = Since(
        (2, 6), "`POST /servers/{id}/remote-consoles` replaces the actions that open a console"
    )
    PUBLIC_FLAVORS_WITHOUT_ACCESS_LIST = Since(
        (2, 7), "nobody is let in to a flavor that is public already (409)"
    )
    MKS_CONSOLES = Since((2, 8), "consoles of the type `mks`")
    LOCKED_SHOWN = Since((2, 9), "servers show whether they are `locked`")
    KEYPAIRS_OF_OTHER_USERS = Since((2, 10), "administrators handle the key pairs of other users (`user_id`)")
    SERVICES_FORCED_DOWN = Since((2, 11), "a service can be said to be down (`forced_down`)")
    NETWORKS_OF_VIRTUAL_INTERFACES = Since((2, 12), "virtual interfaces show their network")
    OWNERS_OF_SERVER_GROUPS = Since((2, 13), "server groups show their project and user")
    SIMPLER_EVACUATION = Since(
        (2, 14), "evacuation finds out about shared storage itself, and answers no password"
    )
    SOFT_AFFINITY = Since((2, 15), "the policies `soft-affinity` and `soft-anti-affinity` of server groups")
    HOST_STATUS = Since((2, 16), "servers show the state of their host (`host_status`)")
    CRASH_DUMPS = Since((2, 17), "the action `trigger_crash_dump`")
    PATHS_WITHOUT_PROJECT = Since((2, 18), "paths need no project's id")
    SERVER_DESCRIPTIONS = Since((2, 19), "servers have a description")
    VOLUMES_OF_SHELVED_SERVERS = Since((2, 20), "volumes are attached to and detached from shelved servers")
    ACTIONS_OF_DELETED_SERVERS = Since((2, 21), "the actions of a deleted server can be read")
    LIVE_MIGRATION_FORCED_TO_COMPLETE = Since(
        (2, 22), "a live migration can be told to complete (`force_complete`)"
    )
    SERVER_MIGRATIONS = Since((2, 23), "`GET /servers/{id}/migrations`; migrations show their type")
    LIVE_MIGRATION_ABORTED = Since((2, 24), "a running live migration can be aborted (DELETE)")
    BLOCK_MIGRATION_CHOSEN = Since((2, 25), "`block_migration` may be `auto`, and `disk_over_commit` is gone")
    SERVER_TAGS = Since((2, 26), "servers have tags, and are listed by them")
    STANDARD_VERSION_HEADER = Since((2, 27), "the header `OpenStack-API-Version` beside the older one")
    CPU_INFO_AS_OBJECT = Since((2, 28), "`cpu_info` of a hypervisor is an object instead of a text")
    EVACUATION_TO_CHECKED_HOST = Since(
        (2, 29), "the host named for an evacuation is checked, unless it is forced (`force`)"
    )
    LIVE_MIGRATION_TO_CHECKED_HOST = Since((2, 30), "the same for a live migration")
    ALL_CONSOLE_TOKENS = Since((2, 31), "tokens of consoles of any type can be looked up")
    DEVICE_TAGS = Since((2, 32), "network interfaces and disks are tagged when a server is created")
    PAGES_OF_HYPERVISORS = Since((2, 33), "hypervisors are listed in pages")
    LIVE_MIGRATION_CHECKED_LATER = Since(
        (2, 34), "a live migration is accepted before its hosts have been asked"
    )
    PAGES_OF_KEYPAIRS = Since((2, 35), "key pairs are listed in pages")
    NO_PROXIES = Since(
        (2, 36), "no more proxies to Image, Network and Volume; their quotas and limits are gone"
    )
    AUTO_OR_NO_NETWORKS = Since((2, 37), "`networks` must be given, and may be `auto` or `none`")
    UNKNOWN_STATUS_REFUSED = Since((2, 38), "servers listed by a status that there isn't: 400")
    NO_IMAGE_METADATA = Since((2, 39), "no more proxy to images' metadata, and no limit for it")
    PAGES_OF_USAGES = Since((2, 40), "usages of projects are listed in pages")
    AGGREGATE_UUIDS = Since((2, 41), "aggregates show their UUID")
    DEVICE_TAGS_AGAIN = Since((2, 42), "tags of disks and interfaces, which some versions had lost")
    NO_OS_HOSTS = Since((2, 43), "no more `/os-hosts`")
    NO_ADDRESS_ACTIONS = Since(
        (2, 44), "no more actions for fixed and floating addresses, nor virtual interfaces"
    )
    IMAGE_ID_IN_BODY = Since((2, 45), "`createImage` and `createBackup` answer the image's id")
    REQUEST_ID_HEADER = Since((2, 46), "answers carry `x-openstack-request-id`")
    FLAVOR_IN_SERVER = Since((2, 47), "servers show what their flavor was, instead of a link to it")
    STANDARD_DIAGNOSTICS = Since((2, 48), "diagnostics have the same form with every driver")
    TAG_WHEN_ATTACHING = Since((2, 49), "interfaces and volumes are tagged when they are attached")
    QUOTA_CLASSES_LIKE_QUOTAS = Since((2, 50), "quota classes have server groups, and no networks")
    MORE_EVENTS = Since(
        (2, 51), "the external event `volume-extended`; owners see the events of their servers' actions"
    )
    TAGS_AT_CREATION = Since((2, 52), "servers are created with tags")
    HOSTS_BY_UUID = Since(
        (2, 53), "services and hypervisors are known by UUID; hypervisors are searched by query"
    )
    KEY_AT_REBUILD = Since((2, 54), "a rebuild may change the key pair")
    FLAVOR_DESCRIPTIONS = Since((2, 55), "flavors have a description, which can be changed")
    MIGRATION_TO_NAMED_HOST = Since((2, 56), "a cold migration may name its host")
    USER_DATA_INSTEAD_OF_FILES = Since(
        (2, 57), "no more injected files, nor their quotas; a rebuild takes user data"
    )
    PAGES_OF_ACTIONS = Since(
        (2, 58), "a server's actions are listed in pages, with `updated_at` and `changes-since`"
    )
    PAGES_OF_MIGRATIONS = Since((2, 59), "migrations are listed in pages, with UUIDs and `changes-since`")
    MULTIATTACH_VOLUMES = Since((2, 60), "volumes that several servers share")
    EXTRA_SPECS_IN_FLAVOR = Since((2, 61), "flavors show their extra specs")
    HOSTS_OF_EVENTS = Since((2, 62), "the events of an action show their host")
    TRUSTED_IMAGE_CERTIFICATES = Since(
        (2, 63), "servers name the certificates that their image must be signed by"
    )
    RULES_OF_SERVER_GROUPS = Since((2, 64), "a server group has one policy, and rules for it")
    QUEUED_LIVE_MIGRATION_ABORTED = Since((2, 65), "a live migration can be aborted before it runs")
    CHANGES_BEFORE = Since((2, 66), "servers, actions and migrations listed by `changes-before`")
    VOLUME_TYPES = Since((2, 67), "disks of a new server name their volume's type")
    NO_FORCED_MOVES = Since((2, 68), "no more `force`: the host named for a move is always checked")
    UNREACHABLE_CELLS = Since((2, 69), "servers whose cell can't be reached are shown in part")
    ATTACHMENT_TAGS_SHOWN = Since((2, 70), "attached interfaces and volumes show their tag")
    GROUPS_IN_SERVER = Since((2, 71), "servers show their server groups")
    PORTS_WITH_RESOURCES = Since((2, 72), "servers are created with ports that ask for resources")
    LOCK_REASON = Since((2, 73), "servers are locked with a reason, and listed by `locked`")
    BOOT_ON_NAMED_HOST = Since((2, 74), "a new server may name its host or node")
    CONSISTENT_ANSWERS = Since(
        (2, 75), "unknown parameters are refused everywhere; what PUT and GET answer is the same"
    )
    POWER_UPDATE_EVENT = Since((2, 76), "the external event `power-update`")
    UNSHELVE_TO_ZONE = Since((2, 77), "a server is unshelved to an availability zone")
    SERVER_TOPOLOGY = Since((2, 78), "`GET /servers/{id}/topology`")
    DELETE_ON_TERMINATION_WHEN_ATTACHING = Since((2, 79), "an attached volume may be deleted with its server")
    OWNERS_OF_MIGRATIONS = Since((2, 80), "migrations show their project and user, and are listed by them")
    IMAGES_CACHED_AHEAD = Since((2, 81), "images are cached on an aggregate's hosts ahead of need")
    ACCELERATOR_EVENT = Since((2, 82), "the external event `accelerator-request-bound`")
    MORE_FILTERS_FOR_USERS = Since(
        (2, 83), "everybody lists servers by what only administrators could, such as by zone"
    )
    DETAILS_OF_EVENTS = Since((2, 84), "the events of an action say what went wrong (`details`)")
    DELETE_ON_TERMINATION_CHANGED = Since(
        (2, 85), "whether a volume is deleted with its server can be changed"
    )
    EXTRA_SPECS_CHECKED = Since((2, 86), "extra specs of flavors are checked when they are written")
    RESCUE_FROM_VOLUME = Since((2, 87), "servers whose disk is a volume can be rescued")
    HYPERVISORS_WITHOUT_USAGE = Since(
        (2, 88), "hypervisors show their uptime, and no usage; their statistics are gone"
    )
    VOLUME_ATTACHMENT_IDS = Since((2, 89), "attached volumes show the ids of the attachment and of the disk")
    HOSTNAMES = Since((2, 90), "a server's hostname can be chosen, and everybody sees it")
    UNSHELVE_TO_HOST = Since((2, 91), "a server is unshelved to a host, or freed of its zone")
    KEYPAIRS_ONLY_IMPORTED = Since(
        (2, 92), "key pairs are no longer generated, and their names may have more letters"
    )
    REBUILD_OF_VOLUME = Since(
        (2, 93), "servers whose disk is a volume can be rebuilt; the event `volume-reimaged`"
    )
    QUALIFIED_HOSTNAMES = Since((2, 94), "a server's hostname may be a domain name")
    EVACUATED_STAY_STOPPED = Since((2, 95), "an evacuated server stays stopped on its new host")
    PINNED_ZONE_SHOWN = Since((2, 96), "servers show the availability zone that they were asked for")
    SHARES = Since((2, 97), "`GET /servers/{id}/shares`: file shares of servers")
    IMAGE_PROPERTIES_SHOWN = Since((2, 98), "servers show the properties of their images")
    DIRECT_SPICE_CONSOLES = Since((2, 99), "consoles of the type `spice-direct`; tokens show `tls_port`")
    SCHEDULER_HINTS_SHOWN = Since((2, 100), "servers show the scheduler hints that they were made with")
    VOLUMES_ATTACHED_LATER = Since((2, 101), "attaching a volume is answered before it is attached")
    QUERIES_CHECKED = Since(
        (2, 102),
        "unknown query parameters are refused everywhere; flavors are listed by name, and lose `rxtx_factor`",
    )
    NO_VOLUMES_BOOT = Since((2, 103), "no more `/os-volumes_boot`")
    ZONE_UNPINNED = Since((2, 104), "`PUT /servers/{id}` frees a server of its zone, or pins it there")


_LOWEST, _HIGHEST = text(Microversion.lowest()), text(Microversion.highest())
_HEAD = f"""# Microversions

A client names the microversion that it speaks in the header `OpenStack-API-Version: compute 2.N` (or, as
older clients do, `X-OpenStack-Nova-API-Version: 2.N`), and gets the behaviour of that version. Without a
header it gets {_LOWEST}; `latest` gets {_HIGHEST}. A version outside the range is answered with 406.

This is the API's history. What of it this cloud offers is on [a page of its own](api.md); where a version
brought something that it doesn't offer, it answers as any cloud without it. `make microversions` writes this
page from the code.

"""


def page() -> str:
    return _HEAD + Microversion.as_markdown()


if __name__ == "__main__":
    print(page(), end="")
