"""Which of the nodes that several hosts share hashing gives to whom. Pure.

Rendezvous hashing: every host gets a number for every node, and the highest wins. So the share of a host that
leaves is spread over all others, one that comes takes a little of everybody's, and nothing else moves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]


def share(host: str, members: Sequence[str], node_uuids: Sequence[str]) -> set[str]:
    """Those of the nodes that hashing gives to `host`."""
    owners = propose(members, node_uuids)
    mine = sorted(set(members)).index(host)
    return {uuid for uuid, owner in zip(node_uuids, owners.tolist(), strict=True) if owner == mine}


def propose(members: Sequence[str], node_uuids: Sequence[str]) -> npt.NDArray[np.intp]:
    """For each node, the place of its owner in the sorted list of members."""
    nodes = _node_hashes(node_uuids)
    seeds = _host_hashes(sorted(set(members)))
    best = np.zeros(len(nodes), dtype=np.intp)
    highest = _mixed(nodes, seeds[0])
    for place, seed in enumerate(seeds[1:], start=1):
        numbers = _mixed(nodes, seed)
        wins = numbers > highest
        best[wins] = place
        highest[wins] = numbers[wins]
    return best


def _host_hashes(names: Sequence[str]) -> Hashes:
    """The same in every process and release, which Python's own hashes are not."""
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _node_hashes(uuids: Sequence[str]) -> Hashes:
    """A UUID is 128 bits already; not all of its kinds are random, so both halves are stirred."""
    halves = np.frombuffer(bytes.fromhex("".join(uuids).replace("-", "")), dtype="<u8").astype(np.uint64)
    return _stirred(halves[0::2]) ^ halves[1::2]


def _mixed(nodes: Hashes, seed: np.uint64) -> Hashes:
    """A number for each node that depends on every bit of both."""
    return _stirred(nodes ^ seed)


def _stirred(numbers: Hashes) -> Hashes:
    """The finish of splitmix64."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
