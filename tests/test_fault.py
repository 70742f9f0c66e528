"""Every fault of `make fault`, a few times."""

import numpy as np
import pytest

from fault import FAULTS, fault, missing


@pytest.mark.parametrize("name", FAULTS)
def test_isde_survives(name, tmp_path):
    module = fault(name)
    if missing(module):
        pytest.skip(f"{missing(module)} is not installed")
    found = list(module.run(module.FEW, tmp_path, np.random.default_rng(0)))
    assert found, "nothing was tried"
    assert [text for text in found if text is not None] == []
