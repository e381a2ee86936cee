"""The demo that ``aeron demo`` runs: one process publishes trades over Aeron, and another process receives them.

On request, the demo also records the trades in an archive, and makes bars of them with Spark.
"""
