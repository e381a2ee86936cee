"""Benchmarks of `format("aeron")`. Most peers only pass prepared rows to Spark, or only count rows. The other peers are
hand-written code and Kafka.

Each cell is a *case*. All cases use one Spark session in local mode. The first two runs of most cases are warm-up runs,
which do not count. A run fails if a row that was published, read or written is missing.
"""
