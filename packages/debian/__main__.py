"""Build all packages: `python -m packages.debian DIRECTORY`.

A package has everything that Moorage needs of Python below /usr/lib/moorage, as `requirements/ci.txt` has it:
Debian's own versions of these libraries are older than what we need. It runs on Debian's Python.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from moorage.cli.packaging import files
from moorage.cli.packaging.programs import PROGRAMS, STATUS
from packages import source
from packages.debian import control, scripts
from packages.debian.control import COMMON, TOOLS, DebianPackage

HERE = Path(__file__).resolve().parent
LIBRARY = Path("usr/lib/moorage")
WANTED = (".[tracing,mariadb]", "os-vif")
"""What is installed, with all that a command may need: nothing can be added later. libvirt's bindings are
Debian's own."""
_ENTRIES = {
    STATUS: "moorage.cli.status:main",
    "moorage-placement": "moorage.cli.launch:placement",
    "moorage-api": "moorage.cli.launch:api",
    "moorage-metadata": "moorage.cli.launch:metadata",
}
_LAUNCHER = """\
#!/usr/bin/python3 -sP
import sys

sys.path.insert(0, "/{library}/python")

from {module} import {function}

sys.exit({function}())
"""


def build(target: Path) -> list[Path]:
    """Writes the packages into `target`."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        stage = Path(directory)
        installed = stage / COMMON / LIBRARY / "python"
        _install(source.copy_to(stage / "source"), installed)
        version = f"{_release(installed)}-1"
        known = control.packages(version, sys.version_info[:2])
        _launchers(stage / COMMON / LIBRARY / "bin")
        _files(stage)
        return [_packed(package, stage / package.name, version, target) for package in known]


def _install(ours: Path, where: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = [
        "--constraint",
        str(source.ROOT / "requirements/ci.txt"),
        "--no-compile",
        "--target",
        str(where),
    ]
    subprocess.run([*pip, *pinned, *WANTED], cwd=ours, check=True)
    shutil.rmtree(where / "bin", ignore_errors=True)


def _release(installed: Path) -> str:
    [found] = installed.glob("moorage-*.dist-info")
    return found.name.removeprefix("moorage-").removesuffix(".dist-info")


def _launchers(where: Path) -> None:
    """Of all programs, also of those whose package is not there: containers need no more than this one."""
    where.mkdir(parents=True)
    entries = {**{program.name: f"{program.module}:main" for program in PROGRAMS}, **_ENTRIES}
    for name, entry in entries.items():
        module, _, function = entry.partition(":")
        path = where / name
        path.write_text(_LAUNCHER.format(library=LIBRARY, module=module, function=function))
        path.chmod(0o755)


def _files(stage: Path) -> None:
    """Each in its package; what is nobody's is everybody's."""
    services = {program.name for program in PROGRAMS if program.is_service}
    for file in files.packaged(files.PACKAGE, Path("/usr/bin")):
        owner = file.program if file.program in services else COMMON
        path = stage / str(owner) / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if "/man/" in file.path:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(file.content.encode(), 9, mtime=0))
        else:
            path.write_text(file.content)
    zsh = stage / COMMON / files.PACKAGE.share / "zsh"
    (zsh / "site-functions").rename(zsh / "vendor-completions")
    for name in (*TOOLS, *services):
        link = stage / (COMMON if name in TOOLS else name) / "usr/bin" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"../lib/moorage/bin/{name}")
    for name, owner in (("moorage.conf", COMMON), ("agent.conf", "moorage-agent")):
        path = stage / owner / "etc/moorage" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE / name, path)


def _packed(package: DebianPackage, tree: Path, version: str, target: Path) -> Path:
    documents = tree / "usr/share/doc" / package.name
    documents.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.ROOT / "LICENSE", documents / "copyright")
    if package.name == COMMON:
        shutil.copyfile(source.ROOT / "docs/licences.md", documents / "licences.md")
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], check=True, capture_output=True, text=True
    ).stdout.strip()
    about = tree / "DEBIAN"
    about.mkdir()
    size = sum(path.lstat().st_size for path in tree.rglob("*")) // 1024
    (about / "control").write_text(package.control(version, architecture, size))
    if package.conffiles:
        (about / "conffiles").write_text("".join(f"{path}\n" for path in package.conffiles))
    written = scripts.COMMON if package.name == COMMON else scripts.of_service(package.name)
    for name, text in written.items():
        (about / name).write_text(text)
        (about / name).chmod(0o755)
    _normalise(tree)
    made = target / f"{package.name}_{version}_{architecture}.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zxz", "-z2", "--build", str(tree), str(made)]
    subprocess.run(command, check=True, capture_output=True)
    return made


def _normalise(tree: Path) -> None:
    """Whatever the mask of who builds it."""
    for path in (tree, *tree.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        elif not path.is_symlink():
            path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)


if __name__ == "__main__":
    for made in build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").absolute()):
        print(made)
