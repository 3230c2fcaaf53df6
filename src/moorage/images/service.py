"""All that the built-in Image API works with."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from oslo_config import cfg

from moorage.core.periodic import Periodic
from moorage.db.database import Database
from moorage.images.catalogue import Catalogue
from moorage.images.files import ImageFiles
from moorage.images.imports import Imports
from moorage.images.uploads import Uploads

_MIB = 1024 * 1024
_SWEEP_SECONDS = 600.0


class ImageService:
    def __init__(
        self, database: Database, files: ImageFiles, max_size: int, import_hosts: Collection[str] = ()
    ) -> None:
        self.catalogue = Catalogue(database)
        self.members = self.catalogue.members
        self.files = files
        self.uploads = Uploads(database, files, max_size)
        self.imports = Imports(self.catalogue, self.uploads, import_hosts)
        self._sweeps = Periodic("image files", _SWEEP_SECONDS, self._sweep)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, database: Database) -> ImageService:
        options = conf.images
        files = ImageFiles(Path(options.directory))
        return cls(database, files, options.max_size * _MIB, options.import_hosts)

    def start(self) -> None:
        """From now on, files that nobody needs are removed."""
        self._sweeps.start()

    def stop(self) -> None:
        self._sweeps.stop()

    def _sweep(self) -> None:
        self.uploads.sweep()
