"""The demo behind ``aeron demo``: trades over Aeron from a publishing to a subscribing process."""
