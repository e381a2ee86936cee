//! Shared memory: mapped files, atomic buffers, ring, broadcast, counters, log buffers, CnC file, error log.
