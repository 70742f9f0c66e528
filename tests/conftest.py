"""Settings and data that several test files share."""

import numpy as np
import pytest
from hypothesis import settings

from isde import chance

# The same examples in every run, and no limit on the first one, which may compile.
settings.register_profile("isde", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("isde")

ALL_TABLES = chance.TABLES
chance.TABLES = 4  # of the tests, few look at how well chance is known, and all of them fit


@pytest.fixture
def all_tables(monkeypatch):
    """Chance as users have it."""
    monkeypatch.setattr(chance, "TABLES", ALL_TABLES)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def rows(rng):
    """120 rows of three columns in [0, 1]: a curved pair, and a column that is alone."""
    t = rng.uniform(size=120)
    X = np.column_stack([t, 4 * (t - 0.5) ** 2 + 0.05 * rng.normal(size=120), rng.normal(size=120)])
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)
