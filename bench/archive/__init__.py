"""The benchmarks of the archive: ours beside the real Java one, both on our driver, with the same client."""
