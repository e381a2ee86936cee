"""Registers the format ``aeron`` with Spark.

Spark imports every ``pyspark_*`` module to find formats. If one import raises, Spark finds no format at all, so this
module never raises.
"""

try:
    from aeron.spark.source import AeronDataSource as DefaultSource
except Exception as error:
    _REASON = f"format aeron cannot be loaded: {error}"
    try:
        from pyspark.sql.datasource import DataSource
    except Exception:
        pass  # This PySpark has no Python data sources.
    else:

        class DefaultSource(DataSource):  # type: ignore[no-redef]
            """Replacement for the format that cannot be loaded. Its first use raises the reason."""

            def __init__(self, options: dict[str, str]) -> None:
                raise ImportError(_REASON)

            @classmethod
            def name(cls) -> str:
                """The format's name."""
                return "aeron"
