"""Benchmarks of `format("aeron")` against peers that only pass prepared data to Spark, or only count rows.

All cases use one Spark session in local mode. The first two runs of most cases are warm-up runs, which do not count. A
run fails if a row that was published, read or written is missing.
"""
