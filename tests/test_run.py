"""Work as values: chunks cover every subset, executors do each once, the store keeps what is done; the same bits."""

import pickle
import time
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.mixture import GaussianMixture

from isde import ISDE, fit_blocks
from isde.errors import PartialWarning
from isde.marginals import MARGINAL_NAMES, resolve_marginal
from isde.marginals.marginal import Traits
from isde.run import executors
from isde.run.executors import CHUNKS_PER_WORKER, LocalExecutor
from isde.run.store import MemoryStore
from isde.run.work import Chunk, ChunkScores, Cost, Means, cut_evenly
from isde.score_costs import expected_cost
from isde.score_tables import How, largest_of_the_last_first, run_tasks, score_models
from isde.score_tasks import SplitRows, Task, plan_tasks, score_task
from isde.splits import draw_splits, resolve_split, split_key
from isde.subsets import SubsetFamily

MARGINALS = {name: name for name in MARGINAL_NAMES} | {
    "an estimator": GaussianMixture(1, random_state=0),
    "a list": ["kde", "gaussian", "stack"],
}
SUBSETS = SubsetFamily(4, 3)


def nothing_said(task):
    return lambda share: None


@pytest.fixture
def scorer(request):
    return resolve_marginal(request.param)


every_marginal = pytest.mark.parametrize("scorer", MARGINALS.values(), ids=MARGINALS, indirect=True)


@pytest.fixture
def table(rng, monkeypatch):
    """Splits that share what is tuned."""
    monkeypatch.setattr("isde.score_tasks.TUNED_FROM", 0)
    X = rng.uniform(size=(90, 4))
    return X, draw_splits(resolve_split("structure", 0), X)


# --- chunks ----------------------------------------------------------------------------------------------------


@every_marginal
@pytest.mark.parametrize(("d", "k"), [(1, 1), (4, 3), (9, 4)])
def test_the_chunks_of_a_scorer_have_keys_of_their_own_and_hold_every_subset_for_each_model(scorer, d, k):
    subsets = SubsetFamily(d, k)
    chunks = scorer.chunks(subsets)
    assert len({chunk.key for chunk in chunks}) == len(chunks)
    for model in range(scorer.n_models):
        assert sum(chunk.n_subsets for chunk in chunks if chunk.model == model) == len(subsets)
    assert all(chunk.work > 0 for chunk in chunks)


@every_marginal
def test_every_subset_is_scored_once_by_each_model(scorer, table):
    X, ((fit, score), *_) = table
    rows, seen = scorer.prepare(X[fit], X[score]), np.zeros((scorer.n_models, len(SUBSETS)), dtype=int)
    for chunk in scorer.chunks(SUBSETS):
        found = scorer.score(rows, SUBSETS, chunk, Means())
        assert len(found.scores) == len(found.bandwidths) == len(found.unsettled) == chunk.n_subsets
        np.add.at(seen[chunk.model], found.positions, 1)
    assert (seen == 1).all()


@every_marginal
def test_chunks_follow_from_the_subsets_never_from_memory_or_workers(scorer):
    def keys():
        return [(chunk.key, chunk.model, chunk.n_subsets) for chunk in scorer.chunks(SubsetFamily(9, 4))]

    plain = keys()
    with config_context(working_memory=8), parallel_config("threading", n_jobs=7):
        assert keys() == plain


@every_marginal
def test_a_chunk_is_expected_to_cost_something(scorer, table):
    X, ((fit, score), *_) = table
    rows = scorer.prepare(X[fit], X[score])
    cost = scorer.cost(rows, SUBSETS, scorer.chunks(SUBSETS)[0], Means())
    assert cost.shared + cost.alone > 0
    assert min(cost.shared, cost.alone, cost.memory) >= 0


class Priced:
    """A scorer of two models whose chunks cost what they are said to."""

    traits, n_models = Traits(), 2

    def chunks(self, subsets, above=0):
        return [Chunk("a", 3, 1.0), Chunk("b", 6, 2.0), Chunk("c", 9, 3.0), Chunk("d", 18, 5.0, model=1)]

    def prepare(self, X_fit, X_score):
        return None

    def cost(self, rows, subsets, chunk, means):
        return Cost(shared=4.0 * chunk.work, alone=1.0 * chunk.work, memory=1000 * chunk.model + 10 * means.n_workers)


@pytest.mark.parametrize(("n_splits", "n_jobs"), [(1, 1), (1, 2), (10, 2)])
def test_the_cost_of_a_table_is_that_of_its_chunks_shared_by_the_workers(n_splits, n_jobs):
    splits = n_splits * [(np.arange(2), np.arange(2, 4))]
    seconds, memory = expected_cost(SplitRows(Priced(), np.zeros((4, 4)), splits), SUBSETS, n_jobs)
    side_by_side = n_jobs if 4 * n_splits >= CHUNKS_PER_WORKER * n_jobs else 1
    assert seconds == pytest.approx(n_splits * (6.0 + 5.0) * (4.0 / n_jobs + 1.0 / side_by_side))
    work, gathered = side_by_side * (1000 + 10 * n_jobs // side_by_side), (17 * n_splits + 5 * 8 * 2) * len(SUBSETS)
    assert memory == work + gathered + 9 * n_splits * 36  # what four chunks find, none of it a bandwidth
    _, in_a_file = expected_cost(SplitRows(Priced(), np.zeros((4, 4)), splits), SUBSETS, n_jobs, in_memory=False)
    assert in_a_file == work + gathered


def test_few_subsets_are_cut_into_chunks_of_one_and_many_into_chunks_of_the_most():
    assert [chunk.n_subsets for chunk in cut_evenly(5, most=8)] == [1] * 5
    many = cut_evenly(10_000, most=8)
    assert {chunk.n_subsets for chunk in many} == {8}
    assert [i for chunk in many for i in chunk.content] == list(range(10_000))


def test_the_key_of_a_split_is_that_of_its_rows_in_their_order(rng):
    X = rng.normal(size=(50, 2))
    one, again, other = (draw_splits(resolve_split("structure", seed), X) for seed in (0, 0, 1))
    assert [split_key(split) for split in one] == [split_key(split) for split in again]
    assert len({split_key(split) for split in (*one, *other)}) == 40
    fit, score = one[0]
    assert split_key((fit[::-1], score)) != split_key((fit, score))
    assert split_key((fit.astype(np.int32), score)) == split_key((fit, score))
    assert split_key((np.array([1, 2]), np.array([3]))) != split_key((np.array([1]), np.array([2, 3])))


# --- executors -------------------------------------------------------------------------------------------------


def squared(task, means):
    return task**2


def test_every_task_is_done_once_whoever_does_it():
    for executor in (LocalExecutor(1), LocalExecutor(2), LocalExecutor(2, in_processes=True)):
        for n in (1, 3, 40):
            tasks = list(range(n))
            done = list(executor.map(squared, tasks, nothing_said))
            assert sorted(done) == [(task, task**2) for task in tasks]


class Begun:
    """A task that does nothing, and leaves a file that says that it was begun."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, task, means):
        (self.folder / str(task)).touch()
        return task


@pytest.mark.parametrize("in_processes", [False, True], ids=["threads", "processes"])
def test_no_worker_begins_a_task_before_what_it_found_last_was_taken(in_processes, tmp_path):
    """Whoever keeps what it takes loses no more than one task of each worker when it is killed."""
    done = LocalExecutor(2, in_processes).map(Begun(tmp_path), range(20), nothing_said)
    for n_taken, _ in enumerate(done):  # this one is taken, but not kept yet
        time.sleep(0.05)  # in which any number could be begun
        assert len(list(tmp_path.iterdir())) - n_taken <= 2


def test_many_chunks_are_done_side_by_side_and_few_by_all_workers_together():
    executor = LocalExecutor(3)
    many, few = executor.means(3 * CHUNKS_PER_WORKER), executor.means(3 * CHUNKS_PER_WORKER - 1)
    assert (many.n_workers, few.n_workers) == (1, 3)
    assert 3 * many.memory <= few.memory
    seen = []
    list(executor.map(lambda task, means: seen.append(means), range(2), nothing_said))
    assert [means.n_workers for means in seen] == [3, 3]
    assert list(seen[0].run(pow, [(2, 3), (3, 2)])) == [8, 9]


def test_little_memory_means_fewer_workers():
    with config_context(working_memory=128):
        assert LocalExecutor(64).n_workers == 2
    with config_context(working_memory=1):
        assert LocalExecutor(64).n_workers == 1


def test_a_task_that_fails_ends_the_map_with_its_error():
    def fail(task, means):
        raise ValueError(f"task {task}")

    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match="task 0"):
            list(LocalExecutor(n_jobs).map(fail, range(1), nothing_said))


# --- the loop --------------------------------------------------------------------------------------------------


@every_marginal
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_is_in_the_store_is_not_done_again(scorer, table, n_jobs):
    X, splits = table
    tasks, rows, advanced = plan_tasks(scorer, splits, SUBSETS, shared=True), SplitRows(scorer, X, splits), []
    store, done = MemoryStore(), []

    def score(task, means):
        done.append(task.key)
        return score_task(rows, task, means)

    tasks = [task for task in tasks if not task.chunk.tuned or task.tunes]  # that need no other one first
    run_tasks(score, tasks[::2], LocalExecutor(n_jobs), store, advanced.append)
    run_tasks(score, tasks, LocalExecutor(n_jobs), store, advanced.append)
    assert sorted(done) == sorted(task.key for task in tasks)
    assert sum(advanced) == sum(task.n_steps for task in tasks)


@every_marginal
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_that_was_cut_off_goes_on_to_the_same_bits(scorer, table, n_jobs):
    """Whatever was done: some of what splits share, all of it, some splits."""
    X, splits = table
    rows, names = SplitRows(scorer, X, splits), tuple("abcd")
    whole = MemoryStore()
    expected = score_models(rows, SUBSETS, names, How(n_jobs, whole))
    keys = sorted(whole.finished())
    for kept in (keys[::2], keys[1::2], [key for key in keys if "tuning" in key], keys[:1]):
        store = MemoryStore()
        for key in kept:
            store.put(key, whole.get(key))
        for one, other in zip(expected, score_models(rows, SUBSETS, names, How(n_jobs, store)), strict=True):
            assert one.scores.tobytes() == other.scores.tobytes()
        assert sorted(store.finished()) == keys


def test_subsets_that_could_not_be_tuned_are_in_no_split_and_named(table):
    """A chunk that ends its process each time it is tuned."""
    X, splits = table
    scorer = resolve_marginal("kde")

    class LosesOne(LocalExecutor):
        def map(self, score, tasks, report):
            for task, found in super().map(score, tasks, report):
                assert task.tunes or task.chunk.key != lost
                yield task, None if task.chunk.key == lost else found

    lost = plan_tasks(scorer, splits, SUBSETS, shared=True)[0].chunk.key
    with pytest.warns(PartialWarning, match=lost):
        (found,) = score_models(SplitRows(scorer, X, splits), SUBSETS, tuple("abcd"), How(1, executor=LosesOne(1)))
    assert (found.scores == -np.inf).any()


@every_marginal
def test_tables_have_the_same_bits_for_any_number_of_workers(scorer, table):
    X, splits = table
    tables = [score_models(SplitRows(scorer, X, splits), SUBSETS, tuple("abcd"), How(n_jobs)) for n_jobs in (1, 2, 3)]
    for one, *others in zip(*tables, strict=True):
        for other in others:
            assert one.scores.tobytes() == other.scores.tobytes()
            assert one.bandwidths.tobytes() == other.bandwidths.tobytes()


def test_rows_are_prepared_once_for_all_chunks_of_a_split(table):
    class Counting:
        prepared = 0

        def prepare(self, X_fit, X_score):
            self.prepared += 1
            return len(X_fit), len(X_score)

    X, splits = table
    scorer = Counting()
    rows = SplitRows(scorer, X, splits)
    assert [rows[number] for number in (0, 0, 1, 0, 1)] == [(40, 50)] * 5
    assert scorer.prepared == 2


def test_progress_within_a_chunk_never_passes_its_end():
    chunks = [Chunk(key, 10, 1.0) for key in "ab"]
    advanced = []

    def score(task, means):
        for share in (0.25, 0.1, 0.9):
            means.report(share)
        return ChunkScores.without_bandwidths(np.arange(10), np.zeros(10))

    tasks = plan_tasks(type("Scorer", (), {"chunks": lambda self, subsets, above: chunks})(), [([0], [1])], SUBSETS)
    run_tasks(score, tasks, LocalExecutor(1), MemoryStore(), advanced.append)
    assert advanced == [2, 7, 1, 2, 7, 1]


def test_the_last_tasks_are_begun_largest_first():
    tasks = [Task(0, Chunk(f"{i}", 1, work), f"{i}", SUBSETS) for i, work in enumerate([1, 5, 2, 9, 3, 4, 8])]
    assert [task.chunk.work for task in largest_of_the_last_first(tasks, 2)] == [1, 5, 2, 9, 8, 4, 3]
    assert [task.chunk.work for task in largest_of_the_last_first(tasks, 50)] == [9, 8, 5, 4, 3, 2, 1]
    assert largest_of_the_last_first(tasks, 1) == tasks


@pytest.mark.parametrize(("left", "n"), [(None, 4), (100 << 20, 1), (600 << 20, 2), (1 << 40, 4)])
def test_there_are_as_many_threads_as_have_room(monkeypatch, left, n):
    monkeypatch.setattr(executors, "address_space_left", lambda: left)
    assert executors.n_threads(4) == n
    assert LocalExecutor(4).n_workers == n
    with executors.workers(4) as run:
        assert list(run(divmod, [(7, 2)])) == [(3, 1)]


def test_no_workers_at_all_are_refused_in_words_that_name_the_parameter(table):
    X, splits = table
    with pytest.raises(ValueError, match=r"n_jobs=0 is no number of workers: give 1 or more, or -1 for all cores\."):
        score_models(SplitRows(resolve_marginal("gaussian"), X, splits), SUBSETS, tuple("abcd"), How(0))
    for ask in (
        ISDE(2, marginal="gaussian", n_jobs=0).fit,
        partial(fit_blocks(X, [range(4)], "kde").score_samples, n_jobs=0),
    ):
        with pytest.raises(ValueError, match=r"n_jobs=0 is no number of workers"):
            ask(X)


@pytest.mark.parametrize("n_tasks", [1, 100])
def test_memory_that_goes_meanwhile_leaves_a_worker(monkeypatch, n_tasks):
    """Under `ulimit -v` each look finds less: workers and their share must be of one look."""
    left = iter(range(8 << 28, 0, -(1 << 28)))
    monkeypatch.setattr(executors, "address_space_left", lambda: next(left))
    assert LocalExecutor(8).means(n_tasks).n_workers >= 1
    left = iter(range(8 << 28, 0, -(1 << 28)))
    found = LocalExecutor(8).map(lambda task, means: means.n_workers, list(range(n_tasks)), nothing_said)
    assert {n for _, n in found} == {1 if n_tasks == 100 else 8}


def test_rows_sent_to_two_threads_of_a_worker_are_not_mixed_up(table, monkeypatch):
    """A worker of a cluster has threads: another one may be sent other rows before this one has looked at its own."""
    X, splits = table
    sent = [pickle.dumps(SplitRows(resolve_marginal("gaussian"), rows, splits)) for rows in (X, -X)]

    class Interrupted(list):
        def __setitem__(self, at, value):
            super().__setitem__(at, value)
            if not interrupted:
                interrupted.append(True)
                pickle.loads(sent[1])

    interrupted = []
    monkeypatch.setattr("isde.score_tasks._here", Interrupted())
    np.testing.assert_array_equal(pickle.loads(sent[0]).X, X)
    assert interrupted
