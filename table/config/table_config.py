"""TableConfig <-> ``.hoodie/hoodie.properties`` (HoodieTableConfig) of table versions 6, 8 and 9.

The file is Java ``Properties`` text with a CRC32 over ``<database>.<table>`` in
``hoodie.table.checksum``. Readers try the file, then its backup.
"""

import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from table import clock
from table.config.change_images import CDC_KEY, IMAGES_KEY, ChangeImages, images_in
from table.config.key_generator import ENCODING_KEY, KeyEncoding, encoding_in
from table.config.merge_mode import PAYLOAD_STRATEGY, MergeMode, merge_mode_of, mode_properties
from table.config.metadata_indexes import indexes_in
from table.config.properties import format_properties, parse_properties
from table.errors import CorruptFileError, InvalidConfigError, StorageError, UnsupportedTableError
from table.storage.interface import METAFOLDER, Storage, join

PROPERTIES_FILE = join(METAFOLDER, "hoodie.properties")
BACKUP_FILE = join(METAFOLDER, "hoodie.properties.backup")
_ALWAYS = ("hoodie.table.name", "hoodie.table.version", "hoodie.timeline.layout.version")
_TRIES = 10
_PAUSE_S = 0.05

TABLE_VERSION = 6  # version of new tables, unless the options name another
LAYOUTS: Mapping[int, int] = MappingProxyType({6: 1, 8: 2, 9: 2})  # written versions -> timeline layout
MERGER_VERSION = 9  # from this version on a mode, and no class, says how records are merged
NATIVE_FORMAT = "native"
UPGRADED_UNTIL = "hudistream.upgraded.until"
"""When the last write of timeline layout 1 was completed, in a table that was upgraded to layout 2 here."""
ROWS_IN_LOGS = "hudistream.rows.in.logs"
"""``true`` once new rows of ours joined log files, so that keys may lie in no base file."""
DEFAULT_PAYLOAD = MergeMode.EVENT_TIME.payload_class

KEYGEN_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "SIMPLE": "org.apache.hudi.keygen.SimpleKeyGenerator",
        "NON_PARTITION": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "COMPLEX": "org.apache.hudi.keygen.ComplexKeyGenerator",
        "TIMESTAMP": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "CUSTOM": "org.apache.hudi.keygen.CustomKeyGenerator",
        "GLOBAL_DELETE": "org.apache.hudi.keygen.GlobalDeleteKeyGenerator",
    }
)


def keygen_type_of(text: str) -> str | None:
    """The key generator's type (``SIMPLE``) for a type or class name as users write it; None if unknown."""
    upper = text.strip().upper()
    if upper in KEYGEN_CLASSES:
        return upper
    short = text.strip().rsplit(".", 1)[-1].replace("AvroKeyGenerator", "KeyGenerator")
    for name, full in KEYGEN_CLASSES.items():
        if full.rsplit(".", 1)[-1] == short:
            return name
    return None


def checksum(table_name: str, database: str = "") -> int:
    """CRC32 that protects the file's identity (HoodieTableConfig.generateChecksum)."""
    return zlib.crc32(f"{database}.{table_name}".encode())


@dataclass(frozen=True)
class TableConfig:
    """The contents of ``hoodie.properties``, typed; `extra` keeps the keys that have no field here.

    Attributes:
        name: ``hoodie.table.name``.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
        version: ``hoodie.table.version``: 6, 8 or 9.
        record_key_fields: columns of the record key, in order.
        partition_fields: columns of the partition path, in order; empty when non-partitioned.
        ordering_fields: ``hoodie.table.precombine.field``, from version 9 on ``hoodie.table.ordering.fields``: one or
            several, the most significant first.
        keygen_type: ``SIMPLE``, ``NON_PARTITION``, …
        hive_style: ``region=eu`` instead of ``eu``.
        url_encode: special characters of partition values become ``%XX``.
        timezone: ``UTC`` or ``LOCAL``: the zone of the instant times.
        timeline_folder: ``hoodie.timeline.path``: folder of the instants below ``.hoodie`` in timeline layout 2.
        archive_folder: folder of retired instants: ``hoodie.archivelog.folder`` below ``.hoodie``, in timeline layout 2
            ``hoodie.timeline.history.path`` below the folder of the instants.
        payload_class: merge semantics of version 6; in version 8 ``hoodie.record.merge.mode`` takes precedence.
        change_images: what change files (``.cdc``) hold; None: the table has none (``hoodie.table.cdc.enabled``).
        table_format: ``hoodie.table.format``: ``native`` if Hudi itself lays out the table.
        key_encoding: how complex record keys of one field are spelled; None: the properties do not say it.

    Raises:
        UnsupportedTableError: when instants or the archive would lie outside of ``.hoodie``.
    """

    name: str
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    ordering_fields: tuple[str, ...] = ()
    table_type: str = "COPY_ON_WRITE"
    version: int = TABLE_VERSION
    layout_version: int = 1
    keygen_type: str = "SIMPLE"
    hive_style: bool = False
    url_encode: bool = False
    timezone: str = "UTC"
    timeline_folder: str = "timeline"
    archive_folder: str = "archived"
    payload_class: str = DEFAULT_PAYLOAD
    base_file_format: str = "PARQUET"
    populate_meta_fields: bool = True
    drop_partition_columns: bool = False
    change_images: ChangeImages | None = None
    metadata_partitions: str = ""
    table_format: str = NATIVE_FORMAT
    key_encoding: KeyEncoding | None = None
    extra: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        archive_key = "hoodie.archivelog.folder" if self.layout_version == 1 else "hoodie.timeline.history.path"
        for key, what, folder in (
            (archive_key, "the archive", self.archive_folder),
            ("hoodie.timeline.path", "the timeline", self.timeline_folder),
        ):
            if any(part in ("", ".", "..") for part in folder.split("/")):
                raise UnsupportedTableError(
                    f"{key}={folder}: {what} must lie within .hoodie; give the name of a folder there, the one that "
                    "the table's writers have"
                )

    def to_properties(self) -> dict[str, str]:
        """The file's keys and values, checksum included."""
        properties = {
            "hoodie.table.name": self.name,
            "hoodie.table.type": self.table_type,
            "hoodie.table.version": str(self.version),
            "hoodie.timeline.layout.version": str(self.layout_version),
            "hoodie.table.recordkey.fields": ",".join(self.record_key_fields),
            "hoodie.table.partition.fields": ",".join(self.partition_fields),
            # Hudi 1.x reads the type, Hudi 0.x the class
            "hoodie.table.keygenerator.type": self.keygen_type,
            "hoodie.table.keygenerator.class": KEYGEN_CLASSES.get(self.keygen_type, self.keygen_type),
            "hoodie.table.base.file.format": self.base_file_format,
            "hoodie.populate.meta.fields": _text(self.populate_meta_fields),
            "hoodie.datasource.write.hive_style_partitioning": _text(self.hive_style),
            "hoodie.datasource.write.partitionpath.urlencode": _text(self.url_encode),
            "hoodie.datasource.write.drop.partition.columns": _text(self.drop_partition_columns),
            "hoodie.partition.metafile.use.base.format": "false",
            "hoodie.table.timeline.timezone": self.timezone,
            "hoodie.archivelog.folder": self.archive_folder,
            CDC_KEY: _text(self.change_images is not None),
            **({IMAGES_KEY: self.change_images.value} if self.change_images is not None else {}),
            "hoodie.table.checksum": str(checksum(self.name, self.extra.get("hoodie.database.name", ""))),
        }
        return {**self.extra, **properties, **self._of_version()}

    def _of_version(self) -> dict[str, str]:
        """The keys of a new table that differ between versions."""
        mode = merge_mode_of(self.payload_class)
        ordering = ",".join(self.ordering_fields)
        found: dict[str, str] = {}
        if self.version < MERGER_VERSION:
            found["hoodie.compaction.payload.class"] = self.payload_class
            found["hoodie.record.merge.strategy.id"] = PAYLOAD_STRATEGY if mode is None else mode.strategy_id
        if ordering:
            key = "precombine.field" if self.version < MERGER_VERSION else "ordering.fields"
            found[f"hoodie.table.{key}"] = ordering
        if self.layout_version > 1:
            found |= {
                "hoodie.archivelog.folder": "archived",
                "hoodie.table.initial.version": str(self.version),
                "hoodie.timeline.path": self.timeline_folder,
                "hoodie.timeline.history.path": self.archive_folder,
                **mode_properties(mode, by_class=self.version < MERGER_VERSION),
            }
        if self.version >= MERGER_VERSION:
            found["hoodie.table.format"] = self.table_format
        if self.key_encoding is not None:
            found[ENCODING_KEY] = self.key_encoding.value
        return found

    @property
    def has_complex_key_of_one_field(self) -> bool:
        """Whether Hudi's releases spell the record keys in two ways (`KeyEncoding`)."""
        return self.keygen_type == "COMPLEX" and len(self.record_key_fields) == 1

    @property
    def names_key_fields(self) -> bool:
        """Whether the names of the fields are a part of record keys, as in ``id:k1`` and ``id:k1,day:5``."""
        return len(self.record_key_fields) > 1 or (
            self.has_complex_key_of_one_field and self.key_encoding is KeyEncoding.FIELD_PREFIXED
        )

    @property
    def tells_keys(self) -> bool:
        """Whether a write can name the keys that it adds and deletes: rows are stored with their keys."""
        return self.populate_meta_fields

    @property
    def has_rows_in_logs(self) -> bool:
        """Whether keys may lie in log files alone (`ROWS_IN_LOGS`)."""
        return self.extra.get(ROWS_IN_LOGS) == "true"

    @property
    def metadata_indexes(self) -> frozenset[str]:
        """The indexes of its metadata table; none where it has no metadata table."""
        return indexes_in(self.metadata_partitions)


def config_from_properties(properties: Mapping[str, str]) -> TableConfig:
    """Typed view of the properties; unknown keys are kept in `extra`.

    Raises:
        UnsupportedTableError: when the table's name is missing (its checksum needs it), or its archive would lie
            outside of ``.hoodie``.
    """
    get = properties.get
    name = get("hoodie.table.name")
    if not name:
        raise UnsupportedTableError("hoodie.properties has no hoodie.table.name: it is no Hudi table")
    keygen = get("hoodie.table.keygenerator.type") or get("hoodie.table.keygenerator.class") or ""
    partition_fields = _names(get("hoodie.table.partition.fields", ""))
    keygen_type = keygen_type_of(keygen) or keygen or ("SIMPLE" if partition_fields else "NON_PARTITION")
    layout_version = int(get("hoodie.timeline.layout.version") or 1)
    in_history = layout_version > 1
    archive_folder = get("hoodie.timeline.history.path" if in_history else "hoodie.archivelog.folder")
    return TableConfig(
        name=name,
        record_key_fields=_names(get("hoodie.table.recordkey.fields", "")),
        partition_fields=partition_fields,
        ordering_fields=_names(get("hoodie.table.ordering.fields") or get("hoodie.table.precombine.field") or ""),
        table_type=get("hoodie.table.type", "COPY_ON_WRITE").upper(),
        # Hudi 1.x takes a missing version for its newest version, which is not this project's
        version=int(get("hoodie.table.version") or 8),
        layout_version=layout_version,
        keygen_type=keygen_type,
        hive_style=_flag(get("hoodie.datasource.write.hive_style_partitioning")),
        url_encode=_flag(get("hoodie.datasource.write.partitionpath.urlencode")),
        timezone=get("hoodie.table.timeline.timezone", "LOCAL").upper(),
        timeline_folder=(in_history and get("hoodie.timeline.path")) or "timeline",
        archive_folder=archive_folder or ("history" if in_history else "archived"),
        payload_class=get("hoodie.compaction.payload.class") or DEFAULT_PAYLOAD,
        base_file_format=get("hoodie.table.base.file.format", "PARQUET").upper(),
        populate_meta_fields=_flag(get("hoodie.populate.meta.fields"), default=True),
        drop_partition_columns=_flag(get("hoodie.datasource.write.drop.partition.columns")),
        change_images=images_in(properties),
        metadata_partitions=get("hoodie.table.metadata.partitions", ""),
        table_format=(get("hoodie.table.format") or NATIVE_FORMAT).strip().lower(),
        key_encoding=encoding_in(properties),
        extra=dict(properties),
    )


def whole_properties(data: bytes) -> dict[str, str]:
    """The properties in the content of ``hoodie.properties`` (pure).

    The checksum protects the names alone, so a file that was cut later on still has the right one. Every writer ends
    the last line, and no version that this project knows is without the keys of `_ALWAYS`.

    Args:
        data: the file's bytes.

    Raises:
        CorruptFileError: they are damaged; the text is what shows it.
    """
    properties = parse_properties(data)
    fault = _find_fault(properties)
    if fault is None and not data.endswith((b"\n", b"\r")):
        fault = "its last line has no end, as if it was cut: end it with a line feed if it is whole"
    if fault is not None:
        raise CorruptFileError(fault)
    return properties


def _find_fault(properties: Mapping[str, str]) -> str | None:
    missing = [key for key in _ALWAYS if not properties.get(key)]
    if missing:
        return f"it has no {missing[0]}"
    stored = properties.get("hoodie.table.checksum")
    expected = str(checksum(properties["hoodie.table.name"], properties.get("hoodie.database.name", "")))
    if stored not in (None, expected):
        return f"its hoodie.table.checksum is {stored}, and not {expected}"
    return None


def load_properties(storage: Storage) -> dict[str, str] | None:
    """The properties, from the file or else from its backup; None if neither exists.

    Raises:
        CorruptFileError: when a file exists, but neither the file nor its backup is whole.
    """
    broken = None
    for path in (PROPERTIES_FILE, BACKUP_FILE):
        try:
            data = storage.read(path)
        except FileNotFoundError:
            continue
        try:
            return whole_properties(data)
        except CorruptFileError as error:
            broken = broken or f"{path} of {storage.base_uri!r} is damaged ({error})"
    if broken is None:
        return None
    raise CorruptFileError(f"{broken}, and there is no whole backup: restore the file from a copy; no data was touched")


def load_table_config(storage: Storage) -> TableConfig | None:
    """The table's configuration, or None if there is no table."""
    properties = load_properties(storage)
    return None if properties is None else config_from_properties(properties)


def create_table_config(storage: Storage, config: TableConfig) -> bool:
    """Writes the properties of a new table unless they exist. Returns whether this call wrote them."""
    data = format_properties(config.to_properties(), clock.now_ms())
    return storage.create_exclusive(PROPERTIES_FILE, data, durable=True)


Changes = Mapping[str, str] | Callable[[Mapping[str, str]], Mapping[str, str]]


def update_properties(storage: Storage, changes: Changes, removed: Collection[str] = frozenset()) -> TableConfig:
    """Changes properties of a table, protected by a backup (HoodieTableConfig.modify).

    The file is replaced and not deleted: two processes that change properties at once must not leave none.

    Args:
        changes: keys and their new values; or what returns them for the properties as they are, where a value depends
            on an earlier one.
        removed: keys to remove.

    Returns:
        The properties with the changes, and with those that another process made meanwhile.

    Raises:
        StorageError: the new file does not read back whole, or others change it again and again.
    """
    if load_properties(storage) is None:
        raise StorageError(f"{PROPERTIES_FILE} of {storage.base_uri!r} does not exist")
    for attempt in range(_TRIES):
        try:
            _back_up(storage, storage.read(PROPERTIES_FILE))
            is_written = _replace(storage, changes, removed)
            data = storage.read(PROPERTIES_FILE)
        except FileNotFoundError:  # Hudi's writers delete the file before they create it anew, and may die in between
            clock.sleep_s(_PAUSE_S)
            if attempt >= _TRIES // 2 and storage.exists(BACKUP_FILE):
                storage.create_exclusive(PROPERTIES_FILE, storage.read(BACKUP_FILE), durable=True)
            continue
        try:
            written = whole_properties(data)
        except CorruptFileError as error:
            raise StorageError(f"{PROPERTIES_FILE} did not read back as written; its backup is in force") from error
        if is_written and _changed(written, changes, removed) == written:
            storage.delete_metafile(BACKUP_FILE)
            if not storage.exists(PROPERTIES_FILE):  # Hudi's writer took our backup for its own
                storage.create_exclusive(BACKUP_FILE, data, durable=True)
            return config_from_properties(written)
    raise StorageError(f"{PROPERTIES_FILE} of {storage.base_uri!r} was changed by others {_TRIES} times in turn")


def _back_up(storage: Storage, data: bytes) -> None:
    """Puts properties that were read in the place of an older backup."""
    storage.delete_metafile(BACKUP_FILE)
    storage.create_exclusive(BACKUP_FILE, data, durable=True)


def _replace(storage: Storage, changes: Changes, removed: Collection[str]) -> bool:
    """Writes the properties with the changes; not if another process changes them at the same moment.

    A store without conditions does not notice: there a change of the other process may be lost.

    Raises:
        FileNotFoundError: the file is not there.
        StorageError: the store fails.
    """

    def change(data: bytes) -> bytes:
        return format_properties(_changed(parse_properties(data), changes, removed), clock.now_ms(), "Updated at")

    with suppress(InvalidConfigError):  # the store, or the disk, knows no conditions after all
        if storage.has_versions:
            seen = storage.read_versioned(PROPERTIES_FILE)
            if seen is None:
                raise FileNotFoundError(PROPERTIES_FILE)
            return storage.replace_if(PROPERTIES_FILE, change(seen.data), seen.version) is not None
    storage.put(PROPERTIES_FILE, change(storage.read(PROPERTIES_FILE)))
    return True


def _changed(properties: Mapping[str, str], changes: Changes, removed: Collection[str]) -> dict[str, str]:
    new = changes(properties) if callable(changes) else changes
    changed = {**{key: value for key, value in properties.items() if key not in removed}, **new}
    name, database = changed["hoodie.table.name"], changed.get("hoodie.database.name", "")
    return {**changed, "hoodie.table.checksum": str(checksum(name, database))}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _flag(text: str | None, *, default: bool = False) -> bool:
    return default if text is None or text == "" else text.strip().lower() == "true"


def _text(flag: object) -> str:
    return "true" if flag else "false"
