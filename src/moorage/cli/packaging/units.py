"""Units of systemd: what each program needs of the machine, and nothing else."""

from __future__ import annotations

from pathlib import Path

from moorage.cli.packaging.programs import PROGRAMS, Program

ACCOUNT = "moorage"
_AGENT = "moorage-agent"
_CONSOLES = "moorage-console-proxy"

_COMMON = """\
[Unit]
Description=Moorage: {summary}
Documentation=man:{name}(1)
After=network-online.target postgresql.service rabbitmq-server.service{after}
Wants=network-online.target
ConditionPathExists={config}

[Service]
Type=notify
NotifyAccess=all
ExecStart={program} --config-file {config}
ExecReload=/bin/sh -c 'kill -HUP $MAINPID'
Restart=always
RestartSec=2
TimeoutStartSec=180
TimeoutStopSec=40
LimitNOFILE=65536
UMask=0027
LockPersonality=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
"""

_CONFINED = """\
User={account}
Group={account}
ReadWritePaths=-/var/lib/moorage
CapabilityBoundingSet={capabilities}
AmbientCapabilities={capabilities}
KeyringMode=private
MemoryDenyWriteExecute=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
"""

_HOST = """\
# As root, for libvirt and the networks of guests; an agent of Ironic, or of simulated hosts, may have
# User=moorage in a drop-in. What it leaves running when it ends, as dnsmasq for its guests, lives on.
KillMode=process
NoNewPrivileges=yes
ProtectControlGroups=yes
ProtectHome=read-only
ProtectSystem=full
"""

_INSTALL = """
[Install]
WantedBy=multi-user.target
"""

SYSUSERS = f'u {ACCOUNT} - "Moorage" /var/lib/moorage\n'
TMPFILES = f"d /var/lib/moorage 0755 {ACCOUNT} {ACCOUNT} -\nd /etc/moorage 0750 root {ACCOUNT} -\n"


def unit(program: Program, programs: Path) -> str:
    """Of a service whose command is in `programs`."""
    common = _COMMON.format(
        name=program.name,
        summary=program.summary,
        config=program.files[0],
        program=programs / program.name,
        after=" libvirtd.service" if program.name == _AGENT else "",
    )
    if program.name == _AGENT:
        return common + _HOST + _INSTALL
    # The proxy to consoles is the one that stands on a port of its own for the public, as 443.
    capabilities = "CAP_NET_BIND_SERVICE" if program.name == _CONSOLES else ""
    return common + _CONFINED.format(account=ACCOUNT, capabilities=capabilities) + _INSTALL


def units(programs: Path) -> dict[str, str]:
    """By the name of the program."""
    return {program.name: unit(program, programs) for program in PROGRAMS if program.is_service}
