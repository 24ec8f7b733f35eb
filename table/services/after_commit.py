"""The services that run after a commit, in their order. A new service is entered here."""

from dataclasses import replace
from typing import Any

from table.options.write_options import WriteOptions
from table.services.archival.service import ArchivalService
from table.services.catalog_service import CatalogService
from table.services.clean.service import CleaningService
from table.services.clustering.service import ClusteringService
from table.services.compaction.service import CompactionService
from table.services.manifest_service import ManifestService
from table.services.metadata_table_service import MetadataTableService
from table.services.service import TableService
from table.transaction.lease import Lease


def services_of(options: WriteOptions, lease: Lease | None = None) -> tuple[TableService[Any], ...]:
    """The services of a sink.

    Args:
        options: the policies of the services.
        lease: the sink's hold on the table; without it, the table is not clustered in the background.

    Cleaning comes after compaction: it deletes the log files of older slices. Archival comes after cleaning: it takes
    replace commits whose replaced files were cleaned. The metadata table comes last: it has the delta commits of all.
    If the services are switched off, the cleaning service only warns. Registration in a catalog and a manifest come
    first: they do not wait for the others, and are no services of the table. A manifest is written after a compaction,
    too, before cleaning deletes what it names. Clustering may take long: it comes when the others are done.
    """
    registers: tuple[TableService[Any], ...] = (CatalogService(options.catalog),) if options.catalog.enabled else ()
    after_compaction: tuple[TableService[Any], ...] = ()
    if options.catalog.manifest is not None:
        manifest = ManifestService(options.catalog.manifest)
        registers, after_compaction = (*registers, manifest), (ManifestService(options.catalog.manifest, manifest),)
    if not options.services.enabled:
        return (*registers, CleaningService(replace(options.clean, automatic=False)))
    clusters: tuple[TableService[Any], ...] = ()
    if lease is not None and (options.clustering.in_background or options.clustering.schedules):
        files, life = options.file_settings, options.heartbeat
        clusters = (ClusteringService(options.clustering, files, life, options.sink.id, lease),)
    return (
        *registers,
        CompactionService(
            options.compaction, options.file_settings, options.clean.on_failure, options.concurrency.is_shared
        ),
        *after_compaction,
        CleaningService(options.clean, archives=options.archive.automatic, compacts=options.compaction.executes),
        ArchivalService(options.archive, options.clean, options.compaction),
        *clusters,
        MetadataTableService(options.table.metadata_delta_commits),
    )
