"""Tests of the statistics and verdicts of the benchmarks, with samples whose true ratio is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bench import statistics
from bench.statistics import LOOKS, Bound, Interval
from hypothesis import given
from hypothesis import strategies as st

SAMPLES = 1000
NOISE = 0.05
FACTOR_OF_MODES = 4.0

Array = np.ndarray[Any, Any]
Side = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Makes the logarithms of runs. The mean of all runs is 0."""


def noise(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.normal(0, NOISE, shape)


def modes(share: float) -> Side:
    """Makes runs of which this share is faster by a factor."""
    distance = np.log(FACTOR_OF_MODES)
    return lambda rng, shape: noise(rng, shape) + distance * ((rng.random(shape) < share) - share)


def outliers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Makes runs of which one in ten is slower by a fifth."""
    return noise(rng, shape) - 0.2 * ((rng.random(shape) < 0.1) - 0.1)


def rounds_of(ours: Side, peer: Side, count: int, samples: int = SAMPLES) -> Array:
    """Returns samples of rounds: the mean log of the two runs of ours, minus that of the peer. The truth is 0."""
    rng = np.random.default_rng(count)
    shape = (samples, count, 2)
    return (ours(rng, shape) - peer(rng, shape)).mean(axis=-1)


@pytest.mark.parametrize(
    ("ours", "peer", "count"),
    [
        (noise, noise, 8),
        (noise, noise, 16),
        (noise, noise, 32),
        (modes(0.5), modes(0.5), 16),
        (modes(0.2), modes(0.6), 16),
        (modes(0.9), noise, 32),
        (outliers, outliers, 16),
    ],
    ids=["8 rounds", "16 rounds", "32 rounds", "equal modes", "unequal modes", "modes of one side", "outliers"],
)
def test_of_a_thousand_intervals_of_95_percent_93_to_97_percent_contain_the_truth(
    ours: Side, peer: Side, count: int
) -> None:
    low, high = statistics.mean_bounds(rounds_of(ours, peer, count), 0.95)
    assert 0.93 <= np.mean((low <= 0) & (high >= 0)) <= 0.97


@pytest.mark.parametrize("side", [noise, modes(0.5)], ids=["noise", "modes"])
def test_with_three_looks_at_most_one_verdict_in_twenty_is_wrong(side: Side) -> None:
    rounds = rounds_of(side, side, LOOKS[-1])
    is_met, is_missed = np.zeros((2, len(rounds)), bool)
    for look in LOOKS:
        low, high = statistics.mean_bounds(rounds[:, :look], statistics.LEVEL)
        is_met |= low > 0
        is_missed |= high < 0
    assert 0.02 <= is_met.mean() <= 0.05
    assert 0.02 <= is_missed.mean() <= 0.05


def test_a_slowness_of_five_percent_is_found_under_noise_of_five_percent() -> None:
    rounds = rounds_of(noise, noise, LOOKS[-1]) + np.log(1 / 1.05)
    _, high = statistics.mean_bounds(rounds, statistics.LEVEL)
    assert np.mean(high < 0) >= 0.9


positive = st.floats(1e-3, 1e9)
sides = st.integers(2, 12).flatmap(
    lambda count: st.lists(st.tuples(positive, positive), min_size=count, max_size=count)
)


@given(sides, st.floats(0.01, 100))
def test_the_ratio_of_a_side_to_a_multiple_of_itself_has_an_interval_of_one_point(
    runs: list[tuple[float, float]], factor: float
) -> None:
    interval = statistics.ratio_interval(np.array(runs) * factor, np.array(runs))
    assert (interval.low, interval.estimate, interval.high) == pytest.approx((factor,) * 3)


@given(sides)
def test_the_ratio_is_that_of_the_geometric_means_and_equal_runs_have_equal_intervals(
    runs: list[tuple[float, float]],
) -> None:
    ours, peer = np.array(runs), np.array(runs)[::-1] ** 0.5
    interval = statistics.ratio_interval(ours, peer)
    assert interval.estimate == pytest.approx(statistics.geometric_mean(ours) / statistics.geometric_mean(peer))
    assert interval.low <= interval.estimate * (1 + 1e-9)
    assert interval.estimate <= interval.high * (1 + 1e-9)
    assert interval == statistics.ratio_interval(ours, peer)


def test_a_mean_of_values_without_logarithms_has_an_interval() -> None:
    interval = statistics.mean_interval([[0.0, 0.0], [-1.0, 1.0], [2.0, 0.0]])
    assert interval.estimate == pytest.approx(1 / 3)
    assert -1 < interval.low < interval.estimate < interval.high


def test_one_round_alone_says_nothing() -> None:
    interval = statistics.ratio_interval(np.array([[2.0, 2.0]]), np.array([[1.0, 1.0]]))
    assert (interval.low, interval.high) == (0, float("inf"))
    assert Bound(1.5, True).verdict(interval) == "open"


intervals = (
    st.lists(st.floats(0.5, 2), min_size=3, max_size=3)
    .map(sorted)
    .map(lambda three: Interval(*three[1:2], *three[::2]))
)


@given(intervals, st.floats(0.5, 2), st.booleans())
def test_a_verdict_is_met_or_missed_only_if_the_whole_interval_is_on_one_side_of_the_goal(
    interval: Interval, goal: float, is_minimum: bool
) -> None:
    verdict = Bound(goal, is_minimum).verdict(interval)
    ends = [interval.low, interval.high]
    reached = [end >= goal if is_minimum else end <= goal for end in ends]
    assert verdict == ("met" if all(reached) else "open" if any(reached) else "missed")


@pytest.mark.parametrize(
    ("interval", "has_modes", "verdict"),
    [
        (Interval(1, 0.975, 1.025), False, "no change"),
        (Interval(0.98, 0.971, 0.99), False, "no change"),
        (Interval(1, 0.96, 1.04), False, "open"),
        (Interval(1, 0.96, 1.04), True, "no change"),
        (Interval(0.95, 0.93, 0.96), False, "missed"),
        (Interval(1.05, 1.01, 1.06), False, "met"),
    ],
)
def test_two_runs_of_the_same_program_have_no_change_if_the_interval_is_close_to_one(
    interval: Interval, has_modes: bool, verdict: str
) -> None:
    assert Bound(1.0, True, "same").verdict(interval, has_modes) == verdict
    if verdict == "no change":
        assert Bound(1.0, True).verdict(interval, has_modes) in ("met", "missed", "open")


@pytest.mark.parametrize(
    ("is_minimum", "interval", "verdict"),
    [
        (True, Interval(0.9, 0.88, 0.92), "met"),
        (True, Interval(1.2, 1.1, 1.3), "limit void"),
        (True, Interval(1.05, 0.98, 1.1), "met"),
        (False, Interval(0.8, 0.7, 0.9), "limit void"),
        (False, Interval(0.98, 0.9, 1.02), "met"),
    ],
)
def test_a_limit_is_void_if_our_whole_interval_is_better_than_the_limit(
    is_minimum: bool, interval: Interval, verdict: str
) -> None:
    goal = 0.85 if is_minimum else 1.1
    assert Bound(goal, is_minimum, "limit").verdict(interval) == verdict
    assert Bound(goal, is_minimum).verdict(interval) == "met"


@pytest.mark.parametrize("share", [0.5, 0.3, 0.8])
@pytest.mark.parametrize("count", [16, 32, 64])
def test_two_modes_are_split_where_they_were_made(share: float, count: int) -> None:
    rng = np.random.default_rng(count)
    fast = np.arange(count) < share * count
    values = np.exp(noise(rng, (count,))) * np.where(fast, FACTOR_OF_MODES, 1)
    boundary = statistics.mode_boundary(values)
    assert boundary is not None
    assert ((values >= boundary) == fast).all()
    low, high = statistics.split(values, boundary)
    assert statistics.geometric_mean(high) / statistics.geometric_mean(low) == pytest.approx(FACTOR_OF_MODES, rel=0.1)


@pytest.mark.parametrize("count", [8, 16, 32, 64])
@pytest.mark.parametrize("side", [noise, outliers], ids=["noise", "outliers"])
def test_runs_of_one_mode_are_rarely_split(side: Side, count: int) -> None:
    rng = np.random.default_rng(count)
    found = [statistics.mode_boundary(np.exp(side(rng, (count,)))) for _ in range(SAMPLES)]
    assert np.mean([boundary is not None for boundary in found]) <= (0.05 if count >= 16 else 0)


def test_a_part_of_less_than_15_percent_is_no_mode() -> None:
    values = np.array([1.0, 1.01, 1.02, 1.03] * 8 + [4.0] * 5)
    assert statistics.mode_boundary(values) is None
    assert statistics.mode_boundary(np.append(values, [4.0, 4.0])) is not None


def test_modes_of_a_cell_are_those_of_the_machine_if_they_go_with_the_probe() -> None:
    rng = np.random.default_rng(1)
    is_fast = rng.random(32) < 0.5
    probes = np.where(is_fast, 130, 500) * np.exp(noise(rng, (32,)))
    rates = np.where(is_fast, 6e6, 2e6) * np.exp(noise(rng, (32,)))
    assert statistics.goes_with_the_probe(rates, probes)
    assert not statistics.goes_with_the_probe(rates, rng.permutation(probes))
    assert not statistics.goes_with_the_probe(rates, np.full(32, 130.0))
