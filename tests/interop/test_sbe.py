"""Tests of Simple Binary Encoding with the reference implementation."""

import os

import pytest

from interop.sbe_codecs import compare_schemas

# `make sbe-cases` sets more cases and another seed.
_SEED = int(os.environ.get("SBE_SEED", "1"))
_CASES = int(os.environ.get("SBE_CASES", "24"))
# The schemas of a batch are compiled by one call of the Java compiler, whose memory limits their number.
_BATCH = 200


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, _CASES, _BATCH))
def test_messages_of_schemas_have_the_bytes_of_the_reference_implementation(first, started, tmp_path):
    """13-28"""
    cases = min(_BATCH, _CASES - first)
    *differences, count = started(lambda: compare_schemas(tmp_path, _SEED + first, cases))
    assert not differences, "\n".join(differences[:20])
    assert int(count.split()[0]) >= cases
