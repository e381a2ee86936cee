"""Errors that pass through Spark: they can be pickled, are one line, and have a code. No Spark is needed."""

from __future__ import annotations

import pickle

import pytest

import aeron
from aeron.spark import errors
from aeron.spark.errors import AeronSparkError, spark_error

CLASSES = [kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_survives_pickling_with_its_code(kind: type[AeronSparkError]) -> None:
    error = pickle.loads(pickle.dumps(kind("option channel: missing")))
    assert type(error) is kind
    assert str(error) == "option channel: missing"
    assert error.code == kind.code
    assert isinstance(error, aeron.AeronError)


def test_every_class_has_a_code_of_its_own_and_a_code_makes_its_class() -> None:
    assert len({kind.code for kind in CLASSES}) == len(CLASSES)
    for kind in CLASSES:
        assert type(spark_error(kind.code, "x")) is kind


def test_a_code_without_a_class_is_kept() -> None:
    error = pickle.loads(pickle.dumps(spark_error("ARCHIVE_IN_USE", "x")))
    assert type(error) is AeronSparkError
    assert error.code == "ARCHIVE_IN_USE"


def test_a_text_is_one_line() -> None:
    assert str(AeronSparkError("first\n  second ")) == "first second"


def test_a_long_text_loses_its_middle_however_often_it_travels() -> None:
    error = AeronSparkError("option x: wrong, got '" + "y" * 10_000_000 + "'; expected z")
    assert str(error).startswith("option x: wrong, got 'yyy")
    assert str(error).endswith("yyy'; expected z")
    assert len(str(error)) <= errors.LONGEST
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_lost_driver_is_a_timeout_of_aeron() -> None:
    assert issubclass(errors.AeronDriverTimeout, aeron.DriverTimeoutError)
