"""Every fault of `make fault`, a few times."""

import numpy as np
import pytest

from fault import FAULTS, fault, missing


@pytest.mark.parametrize("name", FAULTS)
def test_isde_survives(name, tmp_path, monkeypatch):
    module = fault(name)
    monkeypatch.setattr(module, "LIMIT_SECONDS", np.inf, raising=False)  # `make fault` holds times, a test does not
    if missing(module):
        pytest.skip(f"{missing(module)} is not installed")
    found = list(module.run(module.FEW, tmp_path, np.random.default_rng(0)))
    assert found, "nothing was tried"
    assert [text for text in found if text is not None] == []
