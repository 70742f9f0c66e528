"""What does not fit into memory is refused in a sentence, before any of it is asked for."""

import pytest

from isde import ISDE, ForestDensity
from isde import memory as machine
from isde.errors import ResourceError
from isde.memory import check_memory, memory_bytes
from isde.score_costs import check_table
from isde.subsets import SubsetFamily


def test_the_memory_of_this_machine_is_known_or_nothing_is_refused(monkeypatch):
    found = memory_bytes()
    assert found is None or found > 1 << 28
    monkeypatch.setattr(machine, "memory_bytes", lambda: None)
    check_memory(1 << 80, "all", "nothing")


def test_a_container_has_less_than_its_machine(monkeypatch, tmp_path):
    (tmp_path / "memory.max").write_text("123456789\n")
    monkeypatch.setattr(machine, "LIMITS", (tmp_path / "nothing", tmp_path / "memory.max"))
    assert memory_bytes() == 123456789
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_bytes() != 123456789


def test_more_is_refused_and_as_much_is_not(monkeypatch):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 2_500_000)
    check_memory(2_500_000, "a table", "take less")
    with pytest.raises(ResourceError, match=r"^a table needs 3 MB of memory, and there are 2\.5 MB: take less\.$"):
        check_memory(3_000_000, "a table", "take less")


def test_a_table_of_five_thousand_columns_is_refused_before_it_is_begun(monkeypatch):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 64 << 30)
    check_table(SubsetFamily(5000, 2), 20, 3, in_memory=True)
    found = (
        r"max_block_size=3 with 5,000 columns means 20,833,337,500 subsets: .* TB .*: use max_block_size=2, or fewer"
    )
    with pytest.raises(ResourceError, match=found):
        check_table(SubsetFamily(5000, 3), 20, 3, in_memory=True)


@pytest.mark.parametrize("model", [ISDE(3, marginal="gaussian", random_state=0), ForestDensity(random_state=0)])
def test_every_estimator_that_scores_subsets_asks_first(monkeypatch, rng, model):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 500)
    with pytest.raises(ResourceError, match=r"with 6 columns means (41|21) subsets: their table needs"):
        model.fit(rng.normal(size=(50, 6)))


def test_tables_that_fit_are_scored(rng):
    assert len(ISDE(2, marginal="gaussian", random_state=0).fit(rng.normal(size=(50, 6))).subset_scores_) == 21
