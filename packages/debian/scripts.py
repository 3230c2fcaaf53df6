"""What is done when a package is installed, upgraded, removed or purged."""

from __future__ import annotations

_HEAD = "#!/bin/sh\nset -e\n\n"
_RELOAD = "if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n"

COMMON = {
    "postinst": _HEAD
    + """\
if [ "$1" = configure ]; then
    adduser --quiet --system --group --home /var/lib/moorage --no-create-home moorage
    if [ ! -d /var/lib/moorage ]; then
        install --directory --owner moorage --group moorage --mode 755 /var/lib/moorage
    fi
    if [ -z "$2" ]; then
        # Passwords will be in there.
        chown root:moorage /etc/moorage /etc/moorage/moorage.conf
        chmod 750 /etc/moorage
        chmod 640 /etc/moorage/moorage.conf
    fi
    python3 -m compileall -q /usr/lib/moorage/python || true
fi
""",
    "prerm": _HEAD
    + """\
find /usr/lib/moorage/python -name __pycache__ -type d -prune -exec rm -rf {} +
""",
    "postrm": _HEAD
    + """\
if [ "$1" = purge ]; then
    rm -rf /etc/moorage
    # What an agent keeps is its servers' disks: those are for their owner to throw away.
    if [ -d /var/lib/moorage ]; then
        find /var/lib/moorage -mindepth 1 -maxdepth 1 ! -name agent -exec rm -rf {} +
        rmdir --ignore-fail-on-non-empty /var/lib/moorage
    fi
    if [ -d /var/lib/moorage ]; then
        echo "/var/lib/moorage/agent is kept: servers may be in there." >&2
    elif command -v deluser >/dev/null; then
        deluser --quiet --system moorage || true
    fi
fi
""",
}


def of_service(name: str) -> dict[str, str]:
    """Neither started nor restarted: after an upgrade the schema comes first (`moorage-manage db sync`)."""
    configuration = "/etc/moorage/agent.conf"
    guarded = (
        f'if [ "$1" = configure ] && [ -z "$2" ]; then\n    chown root:moorage {configuration}\n'
        f"    chmod 640 {configuration}\nfi\n"
        if name == "moorage-agent"
        else ""
    )
    return {
        "postinst": _HEAD + guarded + _RELOAD,
        "prerm": _HEAD
        + 'if [ "$1" = remove ] && [ -d /run/systemd/system ]; then\n'
        + f"    systemctl disable --now {name}\nfi\n",
        "postrm": _HEAD + _RELOAD,
    }
