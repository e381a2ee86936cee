"""Spark imports every ``pyspark_*`` module to find formats, and loses them all if one raises. This one never does."""

try:
    from aeron.spark.source import AeronDataSource as DefaultSource
except Exception as error:
    _REASON = f"format aeron cannot be loaded: {error}"
    try:
        from pyspark.sql.datasource import DataSource
    except Exception:
        pass  # A PySpark without Python data sources looks for none.
    else:

        class DefaultSource(DataSource):  # type: ignore[no-redef]
            """Stands where the format would be, and says at its first use why it is not there."""

            def __init__(self, options: dict[str, str]) -> None:
                raise ImportError(_REASON)

            @classmethod
            def name(cls) -> str:
                """The format's name."""
                return "aeron"
