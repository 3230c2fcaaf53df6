"""The microversions of the Placement API: the one table, from which `make microversions` writes a page.

For example: python -m moorage.placement.microversions > docs/placement/microversions.md
"""

from __future__ import annotations

from moorage.core.microversions import Since, VersionTable, text


class Microversion(VersionTable):
    FIRST = Since((1, 0), "resource providers, inventories, allocations, usages")
    AGGREGATES = Since((1, 1), "the aggregates of a provider, read and set")
    CUSTOM_CLASSES = Since((1, 2), "resource classes of one's own (`CUSTOM_…`)")
    PROVIDERS_BY_AGGREGATE = Since((1, 3), "providers listed by aggregate (`member_of`)")
    PROVIDERS_BY_RESOURCES = Since((1, 4), "providers listed by what they can still give (`resources`)")
    INVENTORIES_DELETED_AT_ONCE = Since((1, 5), "all inventories of a provider deleted at once")
    TRAITS = Since((1, 6), "traits")
    CLASSES_ENSURED = Since(
        (1, 7), "`PUT /resource_classes/{name}` makes sure that a class exists, without a body"
    )
    OWNERS_OF_ALLOCATIONS = Since((1, 8), "allocations name their project and user")
    USAGES_OF_PROJECTS = Since((1, 9), "usages of a project or user (`GET /usages`)")
    CANDIDATES = Since((1, 10), "allocation candidates")
    LINKS_TO_ALLOCATIONS = Since((1, 11), "a provider's links include its allocations")
    ALLOCATIONS_BY_PROVIDER = Since(
        (1, 12), "allocations are written in the form in which they are read: by provider"
    )
    SEVERAL_CONSUMERS = Since(
        (1, 13), "allocations of several consumers written at once (`POST /allocations`)"
    )
    TREES = Since((1, 14), "providers form trees: parent, root, `in_tree`")
    CACHING_HEADERS = Since((1, 15), "`last-modified` and `cache-control` headers")
    LIMITED_CANDIDATES = Since((1, 16), "`limit` for candidates")
    CANDIDATES_BY_TRAIT = Since((1, 17), "candidates by trait (`required`), and traits in their summaries")
    PROVIDERS_BY_TRAIT = Since((1, 18), "providers listed by trait")
    AGGREGATES_WITH_GENERATION = Since((1, 19), "the generation guards a provider's aggregates too")
    CREATED_PROVIDER_RETURNED = Since((1, 20), "a created provider is returned in the answer")
    CANDIDATES_BY_AGGREGATE = Since((1, 21), "candidates by aggregate (`member_of`)")
    FORBIDDEN_TRAITS = Since((1, 22), "forbidden traits (`required=!…`)")
    ERROR_CODES = Since((1, 23), "error bodies carry a `code`")
    REPEATED_MEMBER_OF = Since((1, 24), "`member_of` may be repeated: all must hold")
    REQUEST_GROUPS = Since((1, 25), "granular request groups (`resources1=…`) and `group_policy`")
    RESERVED_WHOLE = Since((1, 26), "an inventory may be reserved whole")
    ALL_CLASSES_IN_SUMMARIES = Since((1, 27), "summaries show all resource classes of a provider")
    CONSUMER_GENERATIONS = Since(
        (1, 28), "consumer generations: two writers of one consumer can't overwrite each other"
    )
    CANDIDATES_FROM_TREES = Since((1, 29), "candidates from provider trees")
    RESHAPER = Since((1, 30), "inventories and allocations moved together (`POST /reshaper`)")
    CANDIDATES_IN_ONE_TREE = Since((1, 31), "candidates from one tree (`in_tree`)")
    FORBIDDEN_AGGREGATES = Since((1, 32), "forbidden aggregates (`member_of=!…`)")
    NAMED_REQUEST_GROUPS = Since((1, 33), "request groups may have names (`resources_NIC1=…`)")
    MAPPINGS = Since((1, 34), "candidates say which provider serves which group (`mappings`)")
    ROOT_TRAITS = Since((1, 35), "conditions on the root provider (`root_required`)")
    SAME_SUBTREE = Since(
        (1, 36), "groups kept together in a tree (`same_subtree`), and groups without resources"
    )
    PARENT_CHANGED = Since((1, 37), "a provider may change its parent, or lose it")
    CONSUMER_TYPES = Since((1, 38), "consumer types")
    ANY_OF_TRAITS = Since((1, 39), "any of several traits (`required=in:…`), and `required` repeated")


_LOWEST, _HIGHEST = text(Microversion.lowest()), text(Microversion.highest())
_HEAD = f"""# Microversions

A client names the microversion that it speaks in the header `OpenStack-API-Version: placement 1.N`, and
gets the behaviour of that version. Without the header it gets {_LOWEST}; `latest` gets {_HIGHEST}. A version
outside the range is answered with 406. `make microversions` writes this page from the code.

"""


def page() -> str:
    return _HEAD + Microversion.as_markdown()


if __name__ == "__main__":
    print(page(), end="")
