"""``format("aeron")`` as Spark finds it.

Spark makes these objects in several processes and more than once; they store options and open nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import DataSource

from aeron.spark.versions import check_pyspark

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from aeron.spark.sink import AeronStreamWriter, AeronWriter

__all__ = ["AeronDataSource"]


class AeronDataSource(DataSource):
    """The format ``aeron``: live streams, recordings, and what is written to streams. Serves one thread at a time."""

    def __init__(self, options: dict[str, str]) -> None:
        check_pyspark(pyspark.__version__)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The format's name, in any case."""
        return "aeron"

    def schema(self) -> StructType:
        """The columns of a source to which no schema is given."""
        from aeron.spark.columns import default_schema
        from aeron.spark.options import check_source

        options = check_source(self.options)
        return default_schema(options.value_format, include_headers=options.include_headers)

    def writer(self, schema: StructType, overwrite: bool) -> AeronWriter:
        """What ``df.write`` publishes with."""
        from aeron.spark.sink import AeronWriter

        return AeronWriter(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> AeronStreamWriter:
        """What ``df.writeStream`` publishes with, in any output mode."""
        from aeron.spark.sink import AeronStreamWriter

        return AeronStreamWriter(self.options, schema)
