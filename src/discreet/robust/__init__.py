"""When the worst case is not typical: statistics whose noise follows the data, or that say nothing.

Frozen and checked when built, each with its events, loss and release; ⊥ is an outcome, `Unstable`.
"""

from discreet.robust.aggregation.numeric import Centre
from discreet.robust.aggregation.sample_and_aggregate import SampleAndAggregate
from discreet.robust.aggregation.votes import Agreement, Vote
from discreet.robust.propose_test_release import Declared, OnLine, ProposeTestRelease
from discreet.robust.raw_data import RawData, SignificantFeatures
from discreet.robust.sandbox.workers import Limits
from discreet.robust.scale import Scale
from discreet.robust.slope import Slope
from discreet.robust.smooth import SmoothSensitivity
from discreet.robust.stability import StabilityTest, Unstable
from discreet.robust.stable import StableRelease, mode
from discreet.robust.statistics import (
    InterquartileRange,
    MedianDeviation,
    OrderStatistic,
    TrimmedMean,
    local_sensitivity,
)
from discreet.robust.subsampled import SubsampledRelease

__all__ = [
    "Agreement",
    "Centre",
    "Declared",
    "InterquartileRange",
    "Limits",
    "MedianDeviation",
    "OnLine",
    "OrderStatistic",
    "ProposeTestRelease",
    "RawData",
    "SampleAndAggregate",
    "Scale",
    "SignificantFeatures",
    "Slope",
    "SmoothSensitivity",
    "StabilityTest",
    "StableRelease",
    "SubsampledRelease",
    "TrimmedMean",
    "Unstable",
    "Vote",
    "local_sensitivity",
    "mode",
]
