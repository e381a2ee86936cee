"""The demo of ``aeron demo``: trades over Aeron from a publishing to a subscribing process."""
