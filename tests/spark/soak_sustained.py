"""Runs a query for ten minutes at a steady rate. `make soak` runs this file."""

import pytest

from spark.killed.sustained import check_flat, run_steadily


@pytest.mark.timeout(1200)
def test_the_resources_of_a_query_do_not_grow_in_ten_minutes(java, media_driver, shared_memory):
    check_flat(run_steadily(shared_memory, media_driver, 600))
