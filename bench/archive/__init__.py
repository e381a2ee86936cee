"""Benchmarks of our archive and the real Java archive. Both run on our driver. Most benchmarks use the same client
for both."""
