"""Tests of errors that pass through Spark: they can be pickled, their text is one line, and they have a code. No Spark
is needed.
"""

from __future__ import annotations

import pickle

import pytest

import aeron
from aeron.spark import errors
from aeron.spark.errors import AeronSparkError, spark_error

CLASSES = [kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_pickled_error_keeps_its_text_and_code(kind: type[AeronSparkError]) -> None:
    error = pickle.loads(pickle.dumps(kind("option channel: missing")))
    assert type(error) is kind
    assert str(error) == "option channel: missing"
    assert error.code == kind.code
    assert isinstance(error, aeron.AeronError)


def test_each_class_has_its_own_code_and_each_code_creates_its_class() -> None:
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)
    for kind in CLASSES:
        assert type(spark_error(kind.code, "x")) is kind


def test_an_error_with_an_unknown_code_keeps_the_code() -> None:
    error = pickle.loads(pickle.dumps(spark_error("ARCHIVE_IN_USE", "x")))
    assert type(error) is AeronSparkError
    assert error.code == "ARCHIVE_IN_USE"


def test_line_breaks_in_a_text_become_blanks() -> None:
    assert str(AeronSparkError("first\n  second ")) == "first second"


def test_a_long_text_is_shortened_in_the_middle_and_pickling_does_not_change_it_again() -> None:
    error = AeronSparkError("option x: wrong, got '" + "y" * 10_000_000 + "'; expected z")
    assert str(error).startswith("option x: wrong, got 'yyy")
    assert str(error).endswith("yyy'; expected z")
    assert len(str(error)) <= errors.LONGEST
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_error_for_a_lost_driver_is_a_driver_timeout_error_of_aeron() -> None:
    assert issubclass(errors.AeronDriverTimeout, aeron.DriverTimeoutError)
