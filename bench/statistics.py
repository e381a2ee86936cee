"""Statistics and verdicts of the benchmarks. All functions are pure: equal values give equal results.

A *round* measures every cell of a group twice, so the two sides of a line have one value each for a round: the mean of
the logarithms of their two runs. Rounds are the unit of all intervals, because runs of one round have the same state
of the machine.
"""

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

LOOKS = (8, 16, 32)
"""Numbers of rounds after which a verdict may end the measurement of a group."""
LEVEL = 0.98
"""Level of the intervals. A line that just fails its goal is called met at one of three looks in 3 to 4 % of all
measurements. The same is true for a line that just reaches its goal and is called missed."""
RESAMPLES = 10_000
NO_CHANGE_WITHIN = 0.03
NO_CHANGE_WITHIN_FOR_MODES = 0.05

MET, MISSED, OPEN, NO_CHANGE, LIMIT_VOID = "met", "missed", "open", "no change", "limit void"

_LEAST_RUNS_WITH_MODES = 2 * LOOKS[0]
_LEAST_SHARE_OF_A_MODE = 0.15
_DISTANCE_IN_DEVIATIONS = 5
_AGREEMENT_WITH_THE_PROBE = 0.9


@dataclass(frozen=True)
class Interval:
    """An estimate, and the interval that contains the true value."""

    estimate: float
    low: float
    high: float

    def is_within(self, low, high):
        return low <= self.low and self.high <= high


@dataclass(frozen=True)
class Bound:
    """Value that a line must reach. `kind` is what our side is compared with: a `peer`, a `limit` of the machine, or
    the `same` program (another build of it, or another run)."""

    value: float
    is_minimum: bool
    kind: str = "peer"

    def verdict(self, interval, has_modes=False):
        """Returns the verdict for a line with this interval. `has_modes` says that runs of a side fall into modes."""
        within = NO_CHANGE_WITHIN_FOR_MODES if has_modes else NO_CHANGE_WITHIN
        if self.kind == "same" and interval.is_within(1 - within, 1 + within):
            return NO_CHANGE
        better_than_1 = interval.low > 1 if self.is_minimum else interval.high < 1
        if self.kind == "limit" and better_than_1:
            return LIMIT_VOID
        worst, best = (interval.low, interval.high) if self.is_minimum else (-interval.high, -interval.low)
        goal = self.value if self.is_minimum else -self.value
        return MET if worst >= goal else MISSED if best < goal else OPEN


def geometric_mean(values):
    """Returns the geometric mean of positive values."""
    return float(np.exp(np.mean(np.log(values))))


def ratio_interval(ours, peer, level=LEVEL):
    """Returns the ratio of the geometric means of two sides, with its interval.

    Each side is an array with a row for each round, and a column for each run in the round.
    """
    rounds = np.log(ours).mean(axis=1) - np.log(peer).mean(axis=1)
    low, high = mean_bounds(rounds, level)
    return Interval(*(math.exp(value) for value in (rounds.mean(), low, high)))


def mean_interval(values, level=LEVEL):
    """Returns the mean of an array of rounds and runs, with its interval. The values may be 0 or negative."""
    rounds = np.mean(values, axis=1)
    return Interval(float(rounds.mean()), *map(float, mean_bounds(rounds, level)))


def mean_bounds(rounds, level):
    """Returns the bounds of the mean over the last axis, by bootstrap over rounds.

    The plain percentiles of the resampled means cover the truth too rarely: a resample of few values varies less than
    the values, and its tails are those of a normal distribution. So the percentiles are moved outwards, as far as
    Student's t and the factor n / (n - 1) ask for ("expanded percentile interval", Hesterberg 2015).
    """
    count = rounds.shape[-1]
    if count < 2:
        return np.full(rounds.shape[:-1], -np.inf), np.full(rounds.shape[:-1], np.inf)
    reach = _student_quantile((1 + level) / 2, count - 1) * math.sqrt(count / (count - 1))
    tail = NormalDist().cdf(-reach)
    means = rounds @ _resamples(count).T
    low, high = np.quantile(means, [tail, 1 - tail], axis=-1)
    return low, high


@functools.cache
def _resamples(count):
    """Returns the share that each of `count` rounds has in each resample. The shares are the same in every run, so that
    equal values have equal intervals."""
    return np.random.default_rng(count).multinomial(count, [1 / count] * count, size=RESAMPLES) / count


def _student_quantile(probability, freedom):
    """Returns a quantile of Student's t distribution, by Fisher's expansion. With 7 degrees of freedom, the error at
    0.99 is less than 0.1 %."""
    z = NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def mode_boundary(values):
    """Returns the value between two modes of positive values, or `None` if the values have one mode.

    The boundary is in the widest gap of the sorted logarithms that leaves 15 % of the values on each side. The means of
    the two parts must differ by more than five standard deviations of the parts. A rule that only compares the gap with
    the median gap (more than four times as wide) would split a third of all samples of 16 values with one normal
    distribution, and nine of ten samples of 128 values.
    """
    logs = np.sort(np.log(values))
    if len(logs) < _LEAST_RUNS_WITH_MODES:
        return None
    least = math.ceil(_LEAST_SHARE_OF_A_MODE * len(logs))
    size = least + int(np.argmax(np.diff(logs)[least - 1 : len(logs) - least]))
    low, high = logs[:size], logs[size:]
    squares = ((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum()
    deviation = math.sqrt(squares / (len(logs) - 2))
    is_split = high.mean() - low.mean() > _DISTANCE_IN_DEVIATIONS * deviation
    return math.exp((low[-1] + high[0]) / 2) if is_split else None


def split(values, boundary):
    """Returns the values below the boundary and those above it."""
    values = np.asarray(values)
    return values[values < boundary], values[values >= boundary]


def goes_with_the_probe(values, probes):
    """Returns whether the modes of `values` are those of the probe: whether at least 90 % of the runs agree."""
    boundaries = mode_boundary(values), mode_boundary(probes)
    if None in boundaries:
        return False
    agreement = np.mean((np.asarray(values) < boundaries[0]) == (np.asarray(probes) < boundaries[1]))
    return max(agreement, 1 - agreement) >= _AGREEMENT_WITH_THE_PROBE
