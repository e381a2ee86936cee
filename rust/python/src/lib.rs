//! PyO3 bindings: the extension module `aeron._aeron`.
