"""The data source class of ``format("aeron")``.

Spark creates objects of this class in several processes, and more than once. The objects store the options and open
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pyspark
from pyspark.sql.datasource import DataSource

from aeron.spark.versions import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from aeron.spark.options import SourceOptions
    from aeron.spark.recorded_sink import AeronRecordedStreamWriter
    from aeron.spark.sink import AeronStreamWriter, AeronWriter

__all__ = ["AeronDataSource"]


class AeronDataSource(DataSource):
    """The format ``aeron``: reads live streams and recordings, and writes to streams. One thread at a time may use
    it."""

    def __init__(self, options: dict[str, str]) -> None:
        check_pyspark(pyspark.__version__)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """Returns the format's name. Spark ignores upper and lower case."""
        return "aeron"

    def schema(self) -> StructType:
        """Returns the default schema of a source."""
        from aeron.spark.columns import source_schema
        from aeron.spark.options import check_source

        return source_schema(check_source(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns the reader for the recordings of a directory or of a running archive."""
        from aeron.spark.batch_reader import AeronReader
        from aeron.spark.options import is_shared, read_options, shared_read_options

        if is_shared(self.options):
            return AeronReader(_checked(shared_read_options(self.options), schema), schema)
        return AeronReader(_checked(read_options(self.options), schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns the reader for a live stream or a running archive. Never raises: if an option is wrong, the reader's
        first hook raises the error."""
        from aeron.spark.errors import AeronSparkError
        from aeron.spark.options import is_shared, read_stream_options, shared_read_stream_options
        from aeron.spark.stream_reader import AeronStreamReader, RefusingStreamReader

        try:
            if is_shared(self.options):
                return AeronStreamReader(_checked(shared_read_stream_options(self.options), schema), schema)
            return AeronStreamReader(_checked(read_stream_options(self.options), schema), schema)
        except AeronSparkError as error:
            return RefusingStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> AeronWriter:
        """Returns the writer for ``df.write``."""
        from aeron.spark.sink import AeronWriter

        return AeronWriter(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> AeronStreamWriter | AeronRecordedStreamWriter:
        """Returns the writer for ``df.writeStream``, in any output mode."""
        from aeron.spark.options import is_shared
        from aeron.spark.recorded_sink import AeronRecordedStreamWriter
        from aeron.spark.sink import AeronStreamWriter

        if is_shared(self.options):
            return AeronRecordedStreamWriter(self.options, schema)
        return AeronStreamWriter(self.options, schema)


Options = TypeVar("Options", bound="SourceOptions")


def _checked(options: Options, schema: StructType) -> Options:
    """Returns the options. Raises if a source with these options does not have the columns of `schema`."""
    from aeron.spark.columns import check_schema

    check_schema(schema, options)
    return options
