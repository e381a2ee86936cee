"""Tests of Simple Binary Encoding with the reference implementation."""

import os

import pytest

from interop.sbe_codecs import compare_schemas

# `make sbe-cases` sets more cases and another seed.
_SEED = int(os.environ.get("SBE_SEED", "1"))
_CASES = int(os.environ.get("SBE_CASES", "24"))


@pytest.mark.slow
def test_messages_of_schemas_have_the_bytes_of_the_reference_implementation(started, tmp_path):
    """13-28"""
    *differences, count = started(lambda: compare_schemas(tmp_path, _SEED, _CASES))
    assert not differences, "\n".join(differences[:20])
    assert int(count.split()[0]) >= _CASES
