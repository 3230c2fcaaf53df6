"""Alembic's entry point: runs the migrations on the connection that `moorage.db.migrate` hands over."""

from __future__ import annotations

from alembic import context

from moorage.db.tables.metadata import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
