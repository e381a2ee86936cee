"""Benchmarks of the archive: ours and the real Java archive, both on our driver, with the same client."""
