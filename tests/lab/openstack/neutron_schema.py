"""Neutron's tables, made from its models, since its migrations are for MySQL only.

Runs in the environment of Neutron: `python neutron_schema.py DATABASE-URL`. Migrations add one thing to the
tables: the templates of the rules that new security groups get, which are added here.
"""

from __future__ import annotations

import sys
import uuid

import sqlalchemy as sa
from neutron.db.migration.models import head

TEMPLATES = (("egress", None), ("ingress", "PARENT"))
"""Direction, and the group that traffic may come from."""

metadata = head.get_metadata()
engine = sa.create_engine(sys.argv[1])
metadata.create_all(engine)
attributes = metadata.tables["standardattributes"]
rules = metadata.tables["securitygroupdefaultrules"]
with engine.begin() as connection:
    for direction, group in TEMPLATES:
        for ethertype in ("IPv4", "IPv6"):
            made = connection.execute(
                sa.insert(attributes)
                .values(resource_type="securitygroupdefaultrules", revision_number=0)
                .returning(attributes.c.id)
            )
            connection.execute(
                sa.insert(rules).values(
                    id=str(uuid.uuid4()),
                    standard_attr_id=made.scalar_one(),
                    direction=direction,
                    ethertype=ethertype,
                    remote_group_id=group,
                    used_in_default_sg=True,
                    used_in_non_default_sg=direction == "egress",
                )
            )
