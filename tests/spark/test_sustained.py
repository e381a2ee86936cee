"""A minute at a steady rate: what a query holds does not grow. `make soak` takes ten (`soak_sustained.py`)."""

from spark.killed.sustained import check_flat, run_steadily


def test_what_a_query_holds_stays_flat(java, media_driver, shared_memory):
    """08-30, 08-57: retained bytes, memory, descriptors, counters and images"""
    check_flat(run_steadily(shared_memory, media_driver, 60))
