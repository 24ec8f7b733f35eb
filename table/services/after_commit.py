"""The services that run after a commit, in their order. A new service is entered here."""

from typing import Any

from table.options.write_options import WriteOptions
from table.services.archival.service import ArchivalService
from table.services.clean.service import CleaningService
from table.services.service import TableService


def services_of(options: WriteOptions) -> tuple[TableService[Any], ...]:
    """The services of a sink.

    Archival comes after cleaning: it takes replace commits whose replaced files were cleaned.
    """
    return (
        CleaningService(options.clean, archives=options.archive.automatic),
        ArchivalService(options.archive, options.clean),
    )
