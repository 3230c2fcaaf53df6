"""All files around the programs, and where they belong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moorage.cli.packaging import completions, man_pages, samples, units
from moorage.cli.packaging.completions import Shell


@dataclass(frozen=True)
class Layout:
    """Directories below a root."""

    units: str
    share: str
    samples: str
    vendor: str
    """What holds `sysusers.d` and `tmpfiles.d`."""


LOCAL = Layout("etc/systemd/system", "usr/local/share", "etc/moorage", "etc")
"""For an operator, beside what a distribution has brought."""
PACKAGE = Layout("usr/lib/systemd/system", "usr/share", "usr/share/doc/moorage-common/examples", "usr/lib")
"""For a package of a distribution."""

_COMPLETIONS = {
    Shell.BASH: "bash-completion/completions/{}",
    Shell.ZSH: "zsh/site-functions/_{}",
    Shell.FISH: "fish/vendor_completions.d/{}.fish",
}


@dataclass(frozen=True)
class PackagedFile:
    path: str
    """Below the root."""
    content: str
    program: str | None = None
    """Whose it is, if it is not of use to all."""


def packaged(layout: Layout, programs: Path) -> Iterator[PackagedFile]:
    """`programs` is where the commands are."""
    for name, text in units.units(programs).items():
        yield PackagedFile(f"{layout.units}/{name}.service", text, name)
    for name, text in man_pages.pages():
        yield PackagedFile(f"{layout.share}/man/man1/{name}.1", text, name)
    for shell, path in _COMPLETIONS.items():
        for name, text in completions.scripts(shell):
            yield PackagedFile(f"{layout.share}/{path.format(name)}", text)
    yield PackagedFile(f"{layout.vendor}/sysusers.d/moorage.conf", units.SYSUSERS)
    yield PackagedFile(f"{layout.vendor}/tmpfiles.d/moorage.conf", units.TMPFILES)
    yield PackagedFile(f"{layout.samples}/moorage.conf.sample", samples.moorage_conf())
    yield PackagedFile(f"{layout.samples}/agent.conf.sample", samples.agent_conf())
    yield PackagedFile(f"{layout.samples}/policy.yaml.sample", samples.policy_yaml())
