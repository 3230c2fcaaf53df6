"""Config drives: a small disk with what a server shall know of itself, where cloud-init looks for it."""

from __future__ import annotations

import io

import msgspec
import pycdlib

from moorage.drivers import guest_metadata
from moorage.drivers.contract import ServerSpec
from moorage.drivers.guest_metadata import EC2_VERSIONS, OPENSTACK_VERSIONS, GuestIdentity

LABEL = "config-2"
"""By which systems find the disk."""


def of(spec: ServerSpec) -> bytes:
    return disk(GuestIdentity.of(spec))


def disk(guest: GuestIdentity) -> bytes:
    """An ISO 9660 image, with the names that Linux and Windows read."""
    made = pycdlib.PyCdlib()
    made.new(interchange_level=4, joliet=3, rock_ridge="1.09", vol_ident=LABEL)
    documents = guest_metadata.documents(guest)
    _add(made, "openstack", OPENSTACK_VERSIONS, documents)
    _add_files(made, f"/openstack/{guest_metadata.CONTENT}", guest_metadata.contents(guest))
    ec2 = {"meta-data.json": msgspec.json.encode(guest_metadata.ec2_meta_data(guest))}
    if guest_metadata.USER_DATA in documents:
        ec2["user-data"] = documents[guest_metadata.USER_DATA]
    _add(made, "ec2", EC2_VERSIONS, ec2)
    written = io.BytesIO()
    made.write_fp(written)
    made.close()
    return written.getvalue()


def _add(made: pycdlib.PyCdlib, top: str, versions: tuple[str, ...], contents: dict[str, bytes]) -> None:
    """Each document is there once; the directories of further versions only name it again."""
    made.add_directory(f"/{top}", rr_name=top, joliet_path=f"/{top}")
    for version in versions:
        directory = f"/{top}/{version}"
        made.add_directory(directory, rr_name=version, joliet_path=directory)
        for name, content in contents.items():
            path, first = f"{directory}/{name}", f"/{top}/{versions[0]}/{name}"
            if version == versions[0]:
                _add_file(made, path, name, content)
            else:
                made.add_hard_link(iso_old_path=first, iso_new_path=path, rr_name=name)
                made.add_hard_link(iso_old_path=first, joliet_new_path=path)


def _add_files(made: pycdlib.PyCdlib, directory: str, files: dict[str, bytes]) -> None:
    if files:
        made.add_directory(directory, rr_name=directory.rpartition("/")[2], joliet_path=directory)
    for name, content in files.items():
        _add_file(made, f"{directory}/{name}", name, content)


def _add_file(made: pycdlib.PyCdlib, path: str, name: str, content: bytes) -> None:
    made.add_fp(io.BytesIO(content), len(content), path, rr_name=name, joliet_path=path)
