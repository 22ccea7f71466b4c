"""Samples: values of many tests side by side, with moments that are computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headroles.arrays import BoolArray, FloatArray, IndexArray
from headroles.errors import StatisticsError
from headroles.inference._columns import (
    check_clusters,
    check_values,
    columns_with_the_same_gaps,
    renumber,
    resolution_of,
)
from headroles.inference.moments import Moments, describe
from headroles.memory import column_slices, new_array


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked ``values`` (examples, tests), NaN where an example has none, and their ``clusters``.

    ``clusters`` (examples,) are numbered from 0. ``ddof`` is that of standard deviations.
    """

    values: NDArray[np.floating]
    clusters: IndexArray
    ddof: int = 1

    @classmethod
    def of(
        cls,
        values: ArrayLike | Sample,
        clusters: ArrayLike | None = None,
        ddof: int = 1,
    ) -> Sample:
        """Make a sample of values; ``values`` may be a sample already, which is returned.

        Args:
            values: (examples, tests); NaN where an example has no value.
            clusters: (examples,) integer or string label of each example's cluster, such as its
                document; None if the examples are independent.
            ddof: 1 for the sample standard deviation; 0 for the one that the released notebooks
                of the published method use, which inflates t by sqrt(n / (n - 1)).

        Raises:
            StatisticsError: ``values`` is not two-dimensional, not numeric or has an infinity;
                ``clusters`` do not fit, or are given with a sample.
        """
        if isinstance(values, Sample):
            if clusters is not None or ddof != 1:
                raise StatisticsError(
                    "a sample has its own clusters and ddof; omit these arguments"
                )
            return values
        data = check_values(values)
        return cls(data, check_clusters(clusters, len(data)), ddof)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.values)

    @cached_property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return int(self.clusters.max(initial=-1)) + 1

    @property
    def n_tests(self) -> int:
        """Number of tests."""
        return int(self.values.shape[1])

    @property
    def column_slices(self) -> list[slice]:
        """Slices of the columns that are small enough to compute with at once; mostly one."""
        return column_slices(*self.values.shape)

    def take(self, columns: IndexArray | slice) -> Sample:
        """Return the tests at ``columns``, with moments that were computed already."""
        part = Sample(self.values[:, columns], self.clusters, self.ddof)
        if "moments" in self.__dict__:
            part.__dict__["moments"] = self.moments.take(columns)
        return part

    def with_means_alone(self, columns: BoolArray) -> Sample:
        """Return the sample with the mean in place of all values of some tests."""
        values = new_array(self.values.shape, self.values.dtype)
        values[...] = self.values
        own = values[:, columns]
        values[:, columns] = np.where(np.isnan(own), np.nan, self.moments.mean[columns])
        flat = Sample(values, self.clusters, self.ddof)
        resolution = resolution_of(self.values)
        flat.__dict__["moments"] = self.moments.flattened(columns, values.dtype, resolution)
        return flat

    @cached_property
    def gaps(self) -> list[tuple[IndexArray, IndexArray]]:
        """Pairs (columns, rows with values), one for every pattern of missing values."""
        return list(columns_with_the_same_gaps(self.values))

    @cached_property
    def moments(self) -> Moments:
        """Moments of all columns.

        With clusters the standard error is the cluster-robust one of a mean with the correction CR2
        (Bell and McCaffrey 2002), which is unbiased if values are independent:

            SE^2 = sum over clusters of (sum of the cluster's residuals)^2 / (n^2 (1 - s_g))

        s_g = n_g / n being the shares of the clusters in the values of the column. Its degrees of
        freedom are Bell and McCaffrey's, those of the chi-squared distribution of the same mean and
        variance: with q_g = s_g^2 / (1 - s_g),

            df = 1 / (sum of s_g^2 + (sum of q_g)^2 - sum of q_g^2)

        For G clusters of one size these are the usual G / (G - 1) and G - 1. With ``ddof`` 0 the
        terms 1 - s_g are omitted.
        """
        moments = Moments.empty(self.n_tests)
        resolution = resolution_of(self.values)
        for columns, present in self.gaps:
            codes = renumber(self.clusters[present])
            for part in column_slices(len(present), len(columns)):
                complete = self.values[np.ix_(present, columns[part])].astype(np.float64)
                moments.put(columns[part], describe(complete, codes, self.ddof, resolution))
        return moments

    @cached_property
    def skewness(self) -> FloatArray:
        """Skewness (tests,) of the values, NaN if all are equal."""
        mean = self.moments.mean.astype(self.values.dtype)
        second, third = np.empty((2, self.n_tests))
        for part in self.column_slices:
            # in the type of the values: skewness is read to a digit or two
            centred = np.nan_to_num(self.values[:, part] - mean[part])
            squares = centred * centred
            second[part] = squares.sum(axis=0, dtype=np.float64)
            third[part] = (squares * centred).sum(axis=0, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            n = self.moments.n
            return np.asarray(third / n / (second / n) ** 1.5)
