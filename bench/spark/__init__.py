"""Benchmarks of `format("aeron")` against peers that only pass prepared data to Spark, or only count rows.

All cases use one session in local mode. The first two runs of most cases are warm-up and do not count. A run fails if
rows that were published, read or written are missing.
"""
