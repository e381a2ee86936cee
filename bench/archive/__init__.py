"""Benchmarks of our archive and the real Java archive. Both run on our driver, in most cases with the same client."""
