"""Benchmarks of `format("aeron")` against peers that only pass prepared data to Spark, or only count.

One session in local mode. The first two runs of every case do not count. All rows of a case are counted and checked.
"""
