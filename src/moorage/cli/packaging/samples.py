"""Samples of the files that operators write: every option, with its default and what it is for."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

from oslo_config import cfg, generator
from oslo_policy import generator as policy_generator

_NAMESPACES = (
    "moorage",
    "keystonemiddleware.auth_token",
    "oslo.messaging",
    "oslo.middleware.cors",
    "oslo.policy",
)
_AGENT = frozenset(
    {
        "DEFAULT",
        "agent",
        "bus",
        "fake",
        "glance",
        "images",
        "ironic",
        "libvirt",
        "log",
        "metadata",
        "network",
        "neutron",
        "oslo_messaging_rabbit",
        "pci",
        "placement",
        "placement_client",
        "process",
        "tracing",
    }
)
"""Sections that an agent reads. It has no database, and no tokens to check."""
_CREDENTIALS = """
[{section}]
# How {what} is reached: options of keystoneauth.
# auth_type = password
# auth_url = https://keystone.example.com:5000
# project_domain_name = Default
# user_domain_name = Default
# project_name = service
# username = moorage
# password = <None>
# cafile = <None>
# certfile = <None>
# keyfile = <None>
# region_name = <None>
# valid_interfaces = internal,public
"""
_OTHERS = {"placement_client": "Placement", "neutron": "Neutron", "glance": "Glance"}
_SECTION = re.compile(r"^\[(\w+)\]$", re.MULTILINE)


def moorage_conf() -> str:
    """For the processes of the control plane."""
    conf = cfg.ConfigOpts()
    generator.register_cli_opts(conf)
    conf(args=[word for name in _NAMESPACES for word in ("--namespace", name)], default_config_files=[])
    written = io.StringIO()
    generator.generate(conf, written)
    others = "".join(_CREDENTIALS.format(section=name, what=what) for name, what in _OTHERS.items())
    return written.getvalue() + others


def agent_conf() -> str:
    """For agents."""
    head, *sections = re.split(r"(?m)^(?=\[\w+\]$)", moorage_conf())
    kept = [part for part in sections if (found := _SECTION.match(part)) and found[1] in _AGENT]
    return head + "".join(kept)


def policy_yaml() -> str:
    """Every rule, as it is without a file."""
    with tempfile.TemporaryDirectory() as directory:
        written = Path(directory) / "policy.yaml"
        policy_generator.generate_sample(
            ["--namespace", "moorage", "--output-file", str(written)], cfg.ConfigOpts()
        )
        return written.read_text()
