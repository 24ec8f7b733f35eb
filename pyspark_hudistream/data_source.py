"""The format ``hudistream``: ``spark.read.format("hudistream")`` and ``spark.readStream.format("hudistream")``.

Spark creates the source, the readers and the rows in separate processes, and pickles the objects that it passes on.
"""

from functools import cached_property
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pyspark_hudistream.batch_reader import TableReader, feed_of
from pyspark_hudistream.source_options import SourceOptions, parse_source_options
from pyspark_hudistream.stream_reader import StreamReader
from streaming.spark.questions import scan_of
from streaming.spark.schema import to_spark_arrow
from table.errors import InvalidConfigError
from table.hudi_table import HudiTable
from table.log import get_logger

log = get_logger("hudistream.read")


class DefaultSource(DataSource):
    """A Hudi table as a Python data source of Spark 4. Options: docs/guides/reading.md.

    Args:
        options: the user's options; the case of keys does not matter.
    """

    @classmethod
    def name(cls) -> str:
        """The name for ``format(…)``."""
        return "hudistream"

    @cached_property
    def _asked(self) -> SourceOptions:
        return parse_source_options(dict(self.options))

    def schema(self) -> StructType:
        """The columns wanted, with Spark's types, all nullable.

        Raises:
            HudiError: there is no table, an option is wrong, or a column is not in the table.
        """
        asked = self._asked
        table = HudiTable.open(asked.path, asked.storage_options)
        if asked.feed is not None:
            shown = feed_of(table, asked, asked.read.since, asked.read.until, asked.columns).schema
        else:
            shown = scan_of(table, asked.read, asked.columns).schema
        return from_arrow_schema(to_spark_arrow(shown), prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads the table once.

        Args:
            schema: of `schema`, or the user's own.

        Raises:
            InvalidConfigError: an option is for streams.
        """
        asked = self._asked
        asked.check_for_batch()
        for key, reason in asked.without_effect.items():
            log.info("option_without_effect", key=key, reason=reason)
        return TableReader(asked, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 Spark's name
        """Follows the table.

        Args:
            schema: of `schema`, or the user's own.

        Raises:
            InvalidConfigError: an option is not for streams, or an option limits batches and Spark is older than 4.2.
        """
        asked = self._asked
        asked.check_for_stream()
        try:
            from pyspark_hudistream.limited_stream_reader import LimitedStreamReader  # noqa: PLC0415 Spark 4.2
        except ImportError as error:
            if asked.is_limited:
                raise InvalidConfigError(
                    "max_instants_per_batch and max_bytes_per_batch need Spark 4.2: an older one does not tell a "
                    "Python source where a batch begins; leave them out"
                ) from error
            return StreamReader(asked, schema)
        return LimitedStreamReader(asked, schema)

    def writer(self, *_: Any) -> NoReturn:
        """Refuses ``df.write.format("hudistream")``: a source's tasks cannot know how files are filled.

        Raises:
            InvalidConfigError: always; it names `HudiSink`.
        """
        raise InvalidConfigError(
            'format("hudistream") reads tables and writes none: use HudiSink(path, key=…).write(df), with '
            "operation='insert_overwrite_table' to replace all rows"
        )

    def streamWriter(self, *_: Any) -> NoReturn:  # noqa: N802 Spark's name
        """Refuses ``df.writeStream.format("hudistream")``.

        Raises:
            InvalidConfigError: always; it names `HudiSink`.
        """
        raise InvalidConfigError(
            'format("hudistream") reads tables and writes none: use '
            "df.writeStream.foreachBatch(HudiSink(path, key=…)).option('checkpointLocation', …).start()"
        )
