"""The microversions of the Placement API, each with the reason it exists."""

from __future__ import annotations

from moorage.http.version import Version, VersionRange

HISTORY: tuple[tuple[Version, str], ...] = (
    ((1, 0), "providers, inventories, usages, allocations"),
    ((1, 1), "aggregates of a provider"),
    ((1, 2), "custom resource classes"),
    ((1, 3), "list providers by aggregate"),
    ((1, 4), "list providers by the resources they have room for"),
    ((1, 5), "delete all inventories of a provider at once"),
    ((1, 6), "traits"),
    ((1, 7), "PUT of a resource class makes it if need be"),
    ((1, 8), "allocations name a project and a user"),
    ((1, 9), "usages of a project"),
    ((1, 10), "allocation candidates"),
    ((1, 11), "providers link to their allocations"),
    ((1, 12), "allocations are written in the form they are read in"),
    ((1, 13), "allocations of several consumers in one request"),
    ((1, 14), "trees of providers"),
    ((1, 15), "last-modified and cache-control headers"),
    ((1, 16), "limit the number of candidates"),
    ((1, 17), "candidates by required traits"),
    ((1, 18), "list providers by required traits"),
    ((1, 19), "aggregates are guarded by the provider's generation"),
    ((1, 20), "creating a provider answers with it"),
    ((1, 21), "candidates by aggregate"),
    ((1, 22), "forbidden traits"),
    ((1, 23), "errors carry a code"),
    ((1, 24), "several member_of conditions"),
    ((1, 25), "granular request groups"),
    ((1, 26), "an inventory may be reserved whole"),
    ((1, 27), "summaries show every resource class"),
    ((1, 28), "consumer generations"),
    ((1, 29), "candidates from trees of providers"),
    ((1, 30), "reshaper"),
    ((1, 31), "candidates within one tree"),
    ((1, 32), "forbidden aggregates"),
    ((1, 33), "request groups with any suffix"),
    ((1, 34), "candidates say which group each provider serves"),
    ((1, 35), "traits of the root provider"),
    ((1, 36), "same_subtree, and groups without resources"),
    ((1, 37), "providers change their parent"),
    ((1, 38), "consumer types"),
    ((1, 39), "any-of traits, and required given several times"),
)

VERSIONS = VersionRange("placement", HISTORY[0][0], HISTORY[-1][0])
CACHING_SINCE: Version = (1, 15)
