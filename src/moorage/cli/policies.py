"""Every policy rule of ours, for oslo.policy's own commands (`oslopolicy-sample-generator` and its like)."""

from __future__ import annotations

from pathlib import Path

from oslo_config import cfg
from oslo_policy import opts, policy

from moorage.cli import settings
from moorage.compute_api import policies as compute
from moorage.compute_api.routes import FURTHER_RULES
from moorage.compute_api.routes import ROUTES as COMPUTE_ROUTES
from moorage.http import policy as kit
from moorage.images.api import policies as images
from moorage.placement.api import policies as placement
from moorage.placement.api.routes import ROUTES as PLACEMENT_ROUTES


def list_rules() -> list[policy.RuleDefault]:
    """Each name once: the APIs share a policy file, and with it the personas that both of them know."""
    by_name: dict[str, policy.RuleDefault] = {}
    for rule in (
        *compute.rules(COMPUTE_ROUTES, FURTHER_RULES),
        *placement.rules(PLACEMENT_ROUTES),
        *images.rules(),
    ):
        by_name.setdefault(rule.name, rule)
    return list(by_name.values())


def enforcer() -> policy.Enforcer:
    """With the policy file that our configuration names, which may be given as `--config-file`."""
    conf = settings.read(_given())
    made = kit.enforcer(conf, list_rules())
    opts.set_defaults(cfg.CONF, conf.oslo_policy.policy_file)  # `oslopolicy-validator` looks for it there
    return made


def _given() -> list[Path]:
    """oslo.policy's commands keep what they were given in the one place that all of OpenStack shares."""
    try:
        return [Path(path) for path in cfg.CONF.config_file or []]
    except cfg.NoSuchOptError:
        return []
