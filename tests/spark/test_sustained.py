"""Test that the resources of a query do not grow in a minute at a steady rate. `make soak` runs ten minutes
(`soak_sustained.py`)."""

from spark.killed.sustained import check_flat, run_steadily


def test_the_resources_of_a_query_do_not_grow(java, media_driver, shared_memory):
    """08-30, 08-57: the resources are retained bytes, memory, descriptors, counters and images"""
    check_flat(run_steadily(shared_memory, media_driver, 60))
