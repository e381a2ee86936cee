"""Benchmarks of `format("aeron")` beside peers that do nothing but hand Spark what was made before, or count.

One session, local mode, two runs of every case thrown away. What a case reads or writes is counted and checked.
"""
