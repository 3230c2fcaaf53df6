"""A sample of each message, and of what each kind of operation remembers, with a value in every field.

`python -m tests.support.release_samples 0.2.0` writes those of this tree to tests/samples/0.2.0: once, when
it is released. It needs no more of the package than other releases have, so theirs can be made by it, too.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as types

from moorage.bus import contract
from moorage.conductor.operations.register import KINDS
from moorage.db import declared

DIRECTORY = Path(__file__).resolve().parents[1] / "samples"
UNKNOWN = "of_a_newer_release"
_PLAIN: Mapping[type[types.Type], Any] = {
    types.StrType: "text",
    types.IntType: 7,
    types.FloatType: 1.5,
    types.BoolType: True,
    types.DateTimeType: "2026-01-01T00:00:00Z",
    types.DateType: "2026-01-01",
    types.UUIDType: "6f1d2f0e-8a52-4c1b-9b7e-3a0c5d9e7f21",
    types.AnyType: "anything",
    types.NoneType: None,
}


def structs() -> dict[str, dict[str, Any]]:
    """By file and by name: what is sent, and what is remembered."""
    messages = {
        name: found
        for name, found in inspect.getmembers(contract, inspect.isclass)
        if issubclass(found, msgspec.Struct) and found.__module__ == contract.__name__
    }
    return {"messages": messages, "operations": {kind.name: kind.state for kind in KINDS}}


def fill(known: types.Type, *, unknown: bool = False) -> Any:
    """As it is on the wire; with `unknown`, each struct has a field that only a newer release knows."""
    if type(known) in _PLAIN:
        return _PLAIN[type(known)]
    if isinstance(known, types.StructType):
        filled = {field.encode_name: fill(field.type, unknown=unknown) for field in known.fields}
        return {**filled, UNKNOWN: [1]} if unknown else filled
    if isinstance(known, types.ListType | types.SetType | types.FrozenSetType | types.VarTupleType):
        return [fill(known.item_type, unknown=unknown)]
    if isinstance(known, types.TupleType):
        return [fill(one, unknown=unknown) for one in known.item_types]
    if isinstance(known, types.DictType):
        return {fill(known.key_type): fill(known.value_type, unknown=unknown)}
    if isinstance(known, types.UnionType):
        some = next(one for one in known.types if not isinstance(one, types.NoneType))
        return fill(some, unknown=unknown)
    if isinstance(known, types.EnumType):
        return next(iter(known.cls)).value
    if isinstance(known, types.LiteralType):
        return known.values[0]
    raise TypeError(f"no sample of {known}")


def sample(struct: Any, *, unknown: bool = False) -> Any:
    return fill(types.type_info(struct), unknown=unknown)


def all_samples() -> dict[str, dict[str, Any]]:
    return {
        file: {name: sample(struct) for name, struct in found.items()} for file, found in structs().items()
    }


def write(release: str) -> None:
    directory = DIRECTORY / release
    directory.mkdir(parents=True, exist_ok=True)
    for file, samples in all_samples().items():
        (directory / f"{file}.json").write_text(json.dumps(samples, indent=1, sort_keys=True) + "\n")
    (directory / "schema").write_text(f"{declared.newest()}\n")


def misread(samples: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What another release says, of which we can't make anything. What only it knows is not asked of us."""
    found = []
    for file, known in structs().items():
        for name, struct in known.items():
            if name not in samples[file]:
                continue
            try:
                msgspec.convert(samples[file][name], struct)
            except msgspec.ValidationError as error:
                found.append(f"{name}: {error}")
    return found


if __name__ == "__main__":
    if sys.argv[1] == "--read":  # another release's, of which we may be an older or a newer one
        print(json.dumps(misread(json.load(sys.stdin))))
    else:
        write(sys.argv[1])
