"""A search by candidates: lists of subsets beside all of them, what grows, what is proved, and what is said of it."""

import json
import re
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import isde
from isde import ISDE, TreeISDE, best_partitions, select_partition, select_tree, worst_partitions
from isde.cli import main
from isde.errors import InputError
from isde.first_look import QUICKER, WAVES, bytes_of_looks, looks_of_triples
from isde.inspection import extremes, hierarchy, landscape, neighbourhood, torn_columns
from isde.listed_subsets import ListedSubsets
from isde.partitions import enumerate_partitions
from isde.scores import SubsetScores
from isde.scoring import Scoring
from isde.screening import Growth, best_of_columns, in_words_of_search, looked_at, promises, screen
from isde.solvers.dominance import best_divisions
from isde.solvers.proofs import verify
from isde.subsets import SubsetFamily
from isde.synthetic import make_structured


def closed(subsets):
    """Subsets and all their parts."""
    return {part for s in subsets for size in range(1, len(s) + 1) for part in combinations(s, size)}


@st.composite
def tables(draw):
    """A table of all small subsets and of some larger ones, each with all its parts."""
    d = draw(st.integers(4, 8))
    complete = draw(st.integers(1, 3))
    larger = draw(st.lists(st.sets(st.integers(0, d - 1), min_size=complete + 1, max_size=d), max_size=6))
    family = ListedSubsets.of(d, closed(tuple(sorted(s)) for s in larger), complete)
    levels = st.integers(-6, 6).map(lambda n: n / 4)  # many ties
    values = np.array(draw(st.lists(levels, min_size=len(family), max_size=len(family))))
    nothing = np.full(len(family), np.nan)
    return SubsetScores(family, values, nothing, nothing, tuple(f"c{i}" for i in range(d)))


def as_dense(scores):
    """The same table with -inf for all that is not listed."""
    family = SubsetFamily(scores.n_columns, scores.max_block_size)
    values, nothing = np.full(len(family), -np.inf), np.full(len(family), np.nan)
    for subset, score in zip(scores.subsets, scores.scores.tolist(), strict=True):
        values[family.index(subset)] = score
    return SubsetScores(family, values, nothing, nothing, scores.names)


# --- the family ------------------------------------------------------------------------------------------------


@given(tables())
def test_a_listed_family_is_a_sequence_in_the_order_of_all(scores):
    family, every = scores.subsets, SubsetFamily(scores.n_columns, scores.max_block_size)
    listed = list(family)
    assert listed == [family[i] for i in range(len(family))] == [s for s in every if s in set(listed)]
    assert [family.index(s) for s in listed] == list(range(len(family)))
    assert [s in family for s in every] == [s in set(listed) for s in every]
    assert family.sizes.tolist() == list(map(len, listed))
    rows = family.padded_members(np.arange(len(family)))
    assert family.find(rows).tolist() == list(range(len(family)))
    assert [tuple(c for c in row if c >= 0) for row in rows.tolist()] == listed
    assert family.find(every.padded_members(np.arange(len(every)))).tolist() == [
        listed.index(s) if s in family else -1 for s in every
    ]
    weights = np.arange(scores.n_columns) ** 2.0
    assert family.sum_over_members(weights).tolist() == [weights[list(s)].sum() for s in listed]
    assert family.sum_over_members(weights, np.arange(len(family))).tolist() == [weights[list(s)].sum() for s in listed]
    assert family.n_missing == len(every) - len(family)
    assert len({family, ListedSubsets.of(scores.n_columns, listed, family.complete)}) == 1


def test_what_is_not_listed_is_named():
    family = ListedSubsets.of(6, [(0, 1, 2, 3)], complete=3)
    with pytest.raises(ValueError, match=r"\(0, 1, 2, 4\) was not scored: it is none of the 42 subsets listed"):
        family.index((0, 1, 2, 4))
    with pytest.raises(ValueError, match="must ascend"):
        ListedSubsets(6, 3, [np.array([2, 1])])
    with pytest.raises(ValueError, match="no subset of 4 columns with rank 15"):
        ListedSubsets(6, 3, [np.array([15])])


# --- solvers ---------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(tables(), st.sampled_from(["exhaustive", "dynamic", "milp"]))
def test_the_best_partition_of_a_list_is_that_of_a_table_with_nothing_else(scores, solver):
    found, best = select_partition(scores, solver=solver), select_partition(as_dense(scores), solver="exhaustive")
    assert found.partition == best.partition
    assert found.is_optimal
    assert all(block in scores.subsets for block in found.partition)
    assert verify(scores, found).outcome == "proved"


@settings(deadline=None)
@given(tables())
def test_runners_up_and_the_worst_are_partitions_into_listed_blocks(scores):
    possible = [
        sum(scores[block] for block in partition)
        for partition in enumerate_partitions(scores.n_columns, scores.max_block_size)
        if all(block in scores.subsets for block in partition)
    ]
    best, worst = best_partitions(scores, 5), worst_partitions(scores, 5)
    assert [found.score for found in best] == pytest.approx(sorted(possible, reverse=True)[:5])
    assert [found.score for found in worst] == pytest.approx(sorted(possible)[:5])


@given(tables())
def test_divisions_are_those_of_the_table_with_nothing_else(scores):
    dense = as_dense(scores)
    expected = dict(zip(dense.subsets, best_divisions(dense.subsets, dense.scores).tolist(), strict=True))
    found = best_divisions(scores.subsets, np.array(scores.scores))
    assert found.tolist() == pytest.approx([expected[s] for s in scores.subsets])


# --- candidates ------------------------------------------------------------------------------------------------


def planted(d, links, charge=0.02):
    """A table of pairs and triples in which the links gain 0.1 nats, and all others nothing."""
    family = SubsetFamily(d, 3)
    gains, nothing = np.zeros(len(family)), np.full(len(family), np.nan)
    for subset in family:
        gains[family.index(subset)] = 0.1 * sum(set(link) <= set(subset) for link in links)
    charges = charge * (family.sizes - 1.0)
    names = tuple(f"c{i}" for i in range(d))
    return SubsetScores(family, gains, nothing, nothing, names, charges=charges)


def connected(subset, links):
    """Whether links inside a subset connect all of it: the slow twin."""
    inside, reached = [set(link) for link in links if set(link) <= set(subset)], {subset[0]}
    for _ in subset:
        for link in inside:
            reached |= link if link & reached else set()
    return reached == set(subset)


@settings(deadline=None)
@given(
    st.sets(st.sets(st.integers(0, 7), min_size=2, max_size=3).map(lambda s: tuple(sorted(s))), max_size=6),
)
def test_candidates_are_the_sets_that_links_connect_with_all_their_parts(links):
    d, k, asked = 8, 5, []

    def score(new, whole):
        asked.extend(new)
        family = table.subsets
        gains = np.zeros(len(whole))
        gains[: len(family)] = table.scores
        nothing = np.full(len(whole), np.nan)
        charges = np.append(table.charges, np.full(len(whole) - len(family), 0.1))
        return SubsetScores(whole, gains, nothing, nothing, table.names, charges=charges)

    table = planted(d, links)
    found = screen(table, k, score, look=None)
    own = [s for s in SubsetFamily(d, 3) if len(s) > 1 and is_link(s, links)]
    candidates = {s for size in (4, 5) for s in combinations(range(d), size) if connected(s, own)}
    expected = {s for s in closed(candidates) if len(s) > 3}
    assert {s for s in found.subsets if len(s) > 3} == expected
    assert sorted(asked) == sorted(expected)  # each of them once
    assert found.left_out == 0
    assert found.max_block_size == k


def is_link(subset, links):
    """Whether it gains more than its best division: two or more links overlap in it, or it is one."""
    gain = {s: 0.1 * sum(set(link) <= set(s) for link in links) - 0.01 * (len(s) - 1) for s in closed([subset])}
    divisions = [gain[(c,)] + gain[tuple(x for x in subset if x != c)] for c in subset]
    return gain[subset] > max(divisions) + 1e-12


def test_half_of_what_chance_is_charged_makes_a_link():
    weak = planted(6, [(0, 1), (1, 2), (2, 3)], charge=0.19)
    assert list(Growth(6).grow(weak, 4).subsets) == [(0, 1, 2, 3)]
    assert list(Growth(6).grow(planted(6, [(0, 1), (1, 2), (2, 3)], charge=0.21), 4).subsets) == []


def test_of_too_many_candidates_those_that_promise_most_are_scored(monkeypatch):
    every = [tuple(pair) for pair in combinations(range(8), 2)]
    table = planted(8, [*every, (0, 1, 2), (1, 2, 3), (0, 2, 3)])
    monkeypatch.setattr("isde.screening.SCORED", 3)
    grown = Growth(8).grow(table, 4)
    assert grown.left_out == 70 - len(grown.subsets) > 0
    assert (0, 1, 2, 3) in grown.subsets
    held = np.bincount(grown.subsets.members(4).ravel(), minlength=8)
    assert (held >= 3).all()  # no column is forgotten


def test_what_a_candidate_promises_is_exact_for_a_chain(rng):
    chain = np.cumsum(rng.standard_normal((4000, 4)), axis=1)
    scores = Scoring.of(4, marginal="gaussian", split="paper", random_state=0).score(chain)
    found = promises(scores.restrict(3), np.array([[0, 1, 2, 3]], dtype=np.int16))[0]
    margin = scores.gains[-1] - best_divisions(scores.subsets, np.array(scores.gains))[-1]
    assert found == pytest.approx(margin, abs=5e-3)


def test_the_best_of_each_column_are_kept():
    members = np.array([[0, 1], [1, 2], [2, 3], [0, 3]], dtype=np.int16)
    assert best_of_columns(members, np.array([4.0, 3.0, 2.0, 1.0]), 4, most=1).tolist() == [True, True, True, False]
    assert best_of_columns(members, np.array([4.0, 3.0, 2.0, 1.0]), 4, most=2).all()


# --- a first look at triples -----------------------------------------------------------------------------------


def test_a_look_is_the_mean_of_products_of_waves(rng):
    """Triple by triple, wave by wave: the slow twin."""
    X = rng.standard_normal((200, 6))
    X[:, 5] += np.sign(X[:, 1] * X[:, 3])
    ranks = 1 + np.argsort(np.argsort(X, axis=0), axis=0)
    waves = [np.sqrt(2) * np.cos(np.pi * n * ranks / 201) for n in range(1, WAVES + 1)]
    expected = []
    for a, b, c in SubsetFamily(6, 3).members(3).tolist():
        total = 0.0
        for i, j, k in product(range(WAVES), repeat=3):
            mean = (waves[i][:, a] * waves[j][:, b] * waves[k][:, c]).mean()
            total += QUICKER ** (i + j + k) * (mean**2 - 1 / 200)
        expected.append(total / 2)
    np.testing.assert_allclose(looks_of_triples(X, None), expected, rtol=0, atol=1e-6)
    assert SubsetFamily(6, 3).members(3)[np.argmax(expected)].tolist() == [1, 3, 5]


def test_a_look_has_the_same_bits_for_any_number_of_workers_and_any_increasing_scale(rng):
    X = rng.standard_normal((300, 8))
    one = looks_of_triples(X, 1)
    assert one.tobytes() == looks_of_triples(X, 3).tobytes() == looks_of_triples(np.exp(X), 1).tobytes()


def test_triples_are_chosen_by_what_they_and_their_pairs_promise(monkeypatch):
    monkeypatch.setattr("isde.screening.LOOKED", 1)
    family, triples = SubsetFamily(8, 2), list(SubsetFamily(8, 3))[36:]
    gains, nothing = np.zeros(len(family)), np.full(len(family), np.nan)
    gains[family.index((0, 1))], gains[family.index((1, 2))] = 0.5, 0.3  # a chain: it promises the weaker of them
    looks = np.zeros(len(triples))
    looks[triples.index((3, 4, 5))], looks[triples.index((5, 6, 7))], looks[triples.index((0, 3, 6))] = 0.2, 0.25, 0.1
    names = tuple(f"c{i}" for i in range(8))
    grown = looked_at(SubsetScores(family, gains, nothing, nothing, names), looks)
    assert list(grown.subsets) == [(0, 1, 2), (3, 4, 5), (5, 6, 7)]


@pytest.fixture(scope="module")
def wide(rows):
    """The same rows with more columns, of which triples are looked at, beside the search that scores all triples."""
    X = np.hstack([rows[0], np.random.default_rng(5).standard_normal((600, 6))])
    asked = {"search": "screened", "split": "paper", "random_state": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isde.screening.SCORED", 100)
        patch.setattr("isde.screening.LOOKED", 2)
        model = ISDE(5, **asked).fit(X)
    return X, model, Scoring.of(5, **asked).score(X)


def test_after_a_look_every_scored_subset_has_the_score_and_the_charge_it_had(wide, rows):
    _, model, every = wide
    few = model.subset_scores_
    assert (few.subsets.complete, every.subsets.complete) == (2, 3)
    assert len(few) < len(every) / 4
    same = every.only(few.subsets)
    np.testing.assert_allclose(few.scores, same.scores, rtol=0, atol=1e-6)
    assert few.charges.tobytes() == same.charges.tobytes()
    assert model.partition_ == (*rows[1], *((c,) for c in range(14, 20))) == select_partition(every).partition
    assert model.selection_.is_optimal


def test_every_part_of_a_candidate_is_scored_after_a_look(wide):
    subsets = wide[1].subset_scores_.subsets
    larger = [s for s in subsets if len(s) > 3]
    assert larger
    assert all(part in subsets for part in closed(larger))


def test_a_table_after_a_look_is_saved_and_said(wide, tmp_path):
    _, model, _ = wide
    model.save(tmp_path / "model.isde")
    again = isde.load(tmp_path / "model.isde")
    assert again.subset_scores_.subsets == model.subset_scores_.subsets
    assert again.selection_.proof == "proved"
    n = len(model.subset_scores_.subsets.members(3))
    said = in_words_of_search(again.subset_scores_)
    assert said.startswith(f"all subsets of up to 2 columns, {n:,} of 1,140 triples after a first look, and ")
    assert len(model.subset_scores_) + model.subset_scores_.subsets.n_missing == len(SubsetFamily(20, 5))


def test_what_a_look_takes_is_said_before(monkeypatch, rng, capsys):
    monkeypatch.setattr("isde.memory.resident_bytes", lambda: 0)
    X, said = rng.standard_normal((60, 48)), []
    for k in (2, 4):
        Scoring.of(k, search="screened", marginal="gaussian", split="paper", random_state=0, verbose=1).score(X)
        monkeypatch.setattr("isde.first_look.WAVES", 60_000)  # what is said alone follows from it: looks are not made
        monkeypatch.setattr("isde.scoring.looks_of_triples", lambda rows, n_jobs: np.zeros(comb(48, 3)))
        said.append(int(re.search(r"([\d,]+) MB with the rows", capsys.readouterr().err)[1].replace(",", "")))
    assert said[1] - said[0] == pytest.approx(bytes_of_looks(60, 48, 1) / 2**20, abs=1.5)


def test_nothing_grows_from_a_chain_of_pairs_that_no_look_chose():
    every = planted(6, [(0, 1), (1, 2), (2, 3)])
    for triples, expected in (([], []), ([(0, 1, 2)], [(0, 1, 3), (0, 2, 3), (1, 2, 3), (0, 1, 2, 3)])):
        looked = every.only(ListedSubsets(6, 2, [ListedSubsets.of(6, [*triples, (3, 4, 5)]).ranks(3)]))
        assert list(Growth(6).grow(looked, 4).subsets) == expected  # with those of its parts that were not scored


# --- scores and models -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    X, truth = make_structured([5, 4, 3, 1, 1], n_samples=600, random_state=3)
    return X, truth


@pytest.mark.parametrize("marginal", ["copula+stack", "kde", "gaussian", ["kde", "gaussian"]])
def test_a_screened_score_is_the_exhaustive_one_to_float32_rounding(rows, marginal):
    asked = {"marginal": marginal, "split": "paper", "alpha": None, "random_state": 0}
    every, few = (
        Scoring.of(5, search=search, **asked).score(rows[0], columns=False) for search in ("exhaustive", "screened")
    )
    same = every.only(few.subsets)
    assert few.subsets.n_missing > 0
    np.testing.assert_allclose(few.scores, same.scores, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(few.bandwidths, same.bandwidths)


@pytest.fixture(scope="module")
def model(rows):
    return ISDE(5, search="screened", split="paper", random_state=0).fit(rows[0])


def test_planted_blocks_of_five_and_four_are_found_and_proved(rows, model):
    assert model.partition_ == rows[1]
    assert model.selection_.is_optimal
    assert not model.subset_scores_.is_exhaustive
    assert len(model.subset_scores_) + model.subset_scores_.subsets.n_missing == len(SubsetFamily(14, 5))


def test_two_xor_triples_with_a_column_in_common_are_one_block(rng):
    bits = rng.integers(0, 2, size=(1500, 5))
    bits[:, 2], bits[:, 4] = bits[:, 0] ^ bits[:, 1], bits[:, 2] ^ bits[:, 3]
    bits[:, 4] = bits[:, 0] ^ bits[:, 1] ^ bits[:, 3]
    X = np.hstack([bits + 0.2 * rng.standard_normal(bits.shape), rng.standard_normal((1500, 3))])
    found = ISDE(5, search="screened", split="paper", random_state=0).fit(X)
    assert found.partition_ == ((0, 1, 2, 3, 4), (5,), (6,), (7,))


def test_blocks_of_at_most_three_are_searched_exhaustively(rows):
    asked = {"split": "paper", "random_state": 0}
    few, every = (Scoring.of(3, search=s, **asked).score(rows[0][:200]) for s in ("screened", "exhaustive"))
    assert few.is_exhaustive
    assert few.scores.tobytes() == every.scores.tobytes()
    assert few.charges.tobytes() == every.charges.tobytes()


def test_a_saved_model_says_the_same_and_is_proved_again(model, tmp_path):
    model.save(tmp_path / "model.isde")
    again = isde.load(tmp_path / "model.isde")
    assert again.search == "screened"
    assert again.selection_.proof == "proved"
    assert again.subset_scores_.subsets == model.subset_scores_.subsets
    assert again.subset_scores_.left_out == model.subset_scores_.left_out
    assert again.subset_scores_.scores.tobytes() == model.subset_scores_.scores.tobytes()


def test_a_run_goes_on_and_is_not_mixed_with_an_exhaustive_one(rows, tmp_path, monkeypatch):
    asked = {"split": "paper", "random_state": 0, "checkpoint": tmp_path / "run"}
    first = ISDE(5, search="screened", **asked).fit(rows[0])

    def never(*args):
        raise AssertionError("scored again")

    monkeypatch.setattr("isde.run.store.LogStore.put", never)
    again = ISDE(5, search="screened", **asked).fit(rows[0])
    assert again.subset_scores_.scores.tobytes() == first.subset_scores_.scores.tobytes()
    assert again.subset_scores_.subsets == first.subset_scores_.subsets
    with pytest.raises(isde.errors.CheckpointError, match="search"):
        ISDE(5, **asked).fit(rows[0])


def test_a_smaller_table_of_a_screened_one_is_its_prefix(model):
    four, three = (model.subset_scores_.restrict(k) for k in (4, 3))
    assert not four.is_exhaustive
    assert three.is_exhaustive
    assert select_tree(three).is_optimal
    frame = four.to_frame()
    assert len(frame) == len(four)


# --- what is said ----------------------------------------------------------------------------------------------


def test_the_fit_says_what_it_did_not_score(rows, capsys):
    ISDE(5, search="screened", split="paper", random_state=0, verbose=1).fit(rows[0])
    said = capsys.readouterr().err
    assert "all subsets of up to 3 columns and " in said
    assert "others of up to 5 columns were not" in said


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (lambda model, X: model.stability(X), "Comparing parts of the rows"),
        (lambda model, X: landscape(model.subset_scores_), "The landscape of all partitions"),
        (lambda model, X: extremes(model.subset_scores_), "A partition drawn at random"),
        (lambda model, X: select_tree(model.subset_scores_), "A tree of blocks"),
        (lambda model, X: TreeISDE(5).fit(X, subset_scores=model.subset_scores_), "A tree of blocks"),
    ],
)
def test_what_needs_every_subset_is_refused_with_a_way_out(model, rows, ask, what):
    expected = rf"^{what} needs the score of every subset, and search='screened' .* use max_block_size=3, .*$"
    with pytest.raises(InputError, match=expected):
        ask(model, rows[0])


def test_blocks_can_be_looked_at_as_those_of_any_table(model):
    assert torn_columns(model)[0].loss > 0
    assert len(hierarchy(model.subset_scores_, model.partition_).merges) == 13
    assert (neighbourhood(model.subset_scores_, n_walks=3, n_steps=3).below >= -1e-9).all()


def test_a_search_that_does_not_exist_is_refused(rows):
    with pytest.raises(ValueError, match="search='greedy' is unknown: use 'exhaustive' or 'screened'"):
        ISDE(5, search="greedy").fit(rows[0])
    with pytest.raises(ValueError, match=r"penalty='bic' leaves no row out: give one of them"):
        ISDE(5, search="screened", marginal="gaussian", penalty="bic").fit(rows[0])


def call(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_the_terminal_and_the_page_say_that_the_search_was_not_exhaustive(tmp_path, rows):
    np.save(tmp_path / "rows.npy", rows[0][:, :9])
    asked = ["-k", 5, "--marginal", "gaussian", "--split", "paper", "--seed", 0, "--search", "screened"]
    fitted = call("fit", tmp_path / "rows.npy", *asked, "-o", tmp_path / "run")
    for said in (fitted, call("info", tmp_path / "run")):
        assert said.exit_code == 0, said.output
        assert "not exhaustive: all subsets of up to 3 columns and " in said.stdout
        assert "the best partition into scored blocks for these scores, proved" in said.stdout
    summary = json.loads(call("info", tmp_path / "run", "--json").stdout)
    model = isde.load(tmp_path / "run")
    assert summary["n_not_scored"] == model.subset_scores_.subsets.n_missing > 0
    model.report(tmp_path / "page.html")
    assert "The search was not exhaustive: all subsets of up to 3 columns" in (tmp_path / "page.html").read_text()
    for more in (["partitions", tmp_path / "run", "--best", 3], ["export", tmp_path / "run", tmp_path / "scores.csv"]):
        assert call(*more).exit_code == 0


def test_a_tree_is_refused_at_the_terminal(tmp_path, rows):
    np.save(tmp_path / "rows.npy", rows[0])
    refused = call("fit", tmp_path / "rows.npy", "--structure", "tree", "--search", "screened")
    assert refused.exit_code == 2
    assert "--search screened is for --structure blocks: a tree needs the score of every clique" in refused.stderr
