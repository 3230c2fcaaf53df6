"""How many sockets a guest's processors are in, of how many cores and threads."""

from __future__ import annotations

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.domain.guest_options import GuestOptions


def is_asked_for(options: GuestOptions) -> bool:
    """Else it may be as on the host's own processors."""
    return any((*_wanted(options), *_most(options)))


def of(options: GuestOptions, vcpus: int) -> tuple[int, int, int]:
    """Sockets, cores and threads: as asked for, else few threads and many sockets, within what is allowed.

    DriverError if that can't be with so many processors.
    """
    found = [
        shape
        for shape in _shapes(vcpus)
        if all(not wanted or has == wanted for has, wanted in zip(shape, _wanted(options), strict=True))
        and all(not most or has <= most for has, most in zip(shape, _most(options), strict=True))
    ]
    if not found:
        asked = dict(zip(("sockets", "cores", "threads"), _wanted(options), strict=True))
        limits = dict(zip(("sockets", "cores", "threads"), _most(options), strict=True))
        told = [f"{number} {name}" for name, number in asked.items() if number]
        told += [f"at most {number} {name}" for name, number in limits.items() if number]
        raise DriverError(f"{', '.join(told)}: the flavor has {vcpus} processors")
    return min(found, key=lambda shape: (shape[2], -shape[0]))


def _shapes(vcpus: int) -> list[tuple[int, int, int]]:
    numbers = [number for number in range(1, vcpus + 1) if vcpus % number == 0]
    return [
        (sockets, cores, vcpus // (sockets * cores))
        for sockets in numbers
        for cores in numbers
        if vcpus % (sockets * cores) == 0
    ]


def _wanted(options: GuestOptions) -> tuple[int, int, int]:
    return options.sockets, options.cores, options.threads


def _most(options: GuestOptions) -> tuple[int, int, int]:
    return options.max_sockets, options.max_cores, options.max_threads
