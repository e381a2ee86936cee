"""The demo that ``aeron demo`` runs: one process publishes trades over Aeron, and another process receives them."""
