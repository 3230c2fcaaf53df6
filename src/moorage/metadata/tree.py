"""What is at which path: OpenStack's documents below `/openstack`, EC2's words everywhere else."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.drivers import guest_metadata
from moorage.drivers.guest_metadata import META_DATA, NETWORK_DATA, USER_DATA, VENDOR_DATA, GuestIdentity

PASSWORD = "password"
TEXT, JSON = "text/plain; charset=utf-8", "application/json"
EC2_VERSIONS = (
    *("1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15"),
    *("2008-02-01", "2008-09-01", "2009-04-04", "latest"),
)
OPENSTACK_VERSIONS = (
    *("2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06"),
    *("2017-02-22", "2018-08-27", "latest"),
)
"""Those that the reference has, because guests look for one by name. All of them say the same here."""


class Document(msgspec.Struct, frozen=True):
    content: bytes
    content_type: str = TEXT


def parts_of(path: str) -> list[str]:
    """The words of a path; those that name no tree are EC2's."""
    words = [word for word in posixpath.normpath(f"/{path}").split("/") if word]
    return words if words[:1] in (["openstack"], ["ec2"]) else ["ec2", *words]


def is_password(path: str) -> bool:
    words = parts_of(path)
    return len(words) == 3 and words[0] == "openstack" and words[2] == PASSWORD


def look_up(guest: GuestIdentity, path: str, password: str = "") -> Document | None:
    """None if there is nothing there."""
    tree, *rest = parts_of(path)
    if not rest:
        return _lines(OPENSTACK_VERSIONS if tree == "openstack" else EC2_VERSIONS)
    version, *rest = rest
    if tree == "openstack" and version == guest_metadata.CONTENT:
        return _content(guest, rest)
    if tree == "openstack":
        return _openstack(guest, rest, password) if version in OPENSTACK_VERSIONS else None
    return _ec2(guest, rest) if version in EC2_VERSIONS else None


def _openstack(guest: GuestIdentity, rest: list[str], password: str) -> Document | None:
    found = guest_metadata.documents(guest)
    if not rest:
        first = [name for name in (META_DATA, USER_DATA) if name in found]
        others = [name for name in (VENDOR_DATA, NETWORK_DATA, guest_metadata.VENDOR_DATA_2) if name in found]
        return _lines((*first, PASSWORD, *others))
    name, *more = rest
    if more:
        return None
    if name == PASSWORD:
        return Document(password.encode())
    content = found.get(name)
    if content is None:
        return None
    return Document(content, JSON if name.endswith(".json") else TEXT)


def _content(guest: GuestIdentity, rest: list[str]) -> Document | None:
    """A file that came with the request; they are not listed, as in the reference."""
    found = guest_metadata.contents(guest).get("/".join(rest))
    return None if found is None else Document(found, "application/octet-stream")


def _ec2(guest: GuestIdentity, rest: list[str]) -> Document | None:
    here: Any = {"meta-data": guest_metadata.ec2_meta_data(guest)}
    if guest.user_data:
        here["user-data"] = guest_metadata.decoded(guest.user_data)
    for word in rest:
        if not isinstance(here, Mapping) or word not in here or word == _NAME:
            return None
        here = here[word]
    return _told(here)


_NAME = "_name"
"""In a directory: what it is called in the list that it is in."""


def _told(value: Any) -> Document:
    if isinstance(value, bytes):
        return Document(value)
    if isinstance(value, Mapping):
        return _lines(_entry(name, found) for name, found in sorted(value.items()) if name != _NAME)
    if isinstance(value, list | tuple):
        return _lines(value)
    return Document(str(value).encode())


def _entry(name: str, found: Any) -> str:
    if not isinstance(found, Mapping):
        return name
    return str(found.get(_NAME, f"{name}/"))


def _lines(words: Any) -> Document:
    return Document("\n".join(map(str, words)).encode())
