"""isde reproduce: what is said of a difference between published and measured numbers follows from the numbers."""

import pytest

from isde.paper import ITEMS
from isde.paper import table_running_times as running_times
from isde.paper.item import Results, Settings
from isde.subsets import SubsetFamily


def results(name, rows, **settings):
    settings = {"item": name, "size": "full", "protocol": "clean", "file": "cells.npz", "sha256": "0"} | settings
    return Results(name, settings | {"max_block_size": settings.get("max_block_size")}, rows, [])


def box_rows(**values):
    return [
        {"method": m, "log_likelihood": v, "dropped_rows": 0, "n_rows": 100, "n_columns": 13}
        for m, some in values.items()
        for v in some
    ]


def test_an_order_by_medians_that_means_reverse_is_told():
    rows = box_rows(ISDE=[9.0, 9.0, -90.0], FDE=[5.0] * 3, CVKDE=[4.0] * 3, GM=[6.0] * 3)
    order = ITEMS["figure-levine-boxplot"].findings(results("figure-levine-boxplot", rows))[4]
    assert order.measured == "ISDE > GM > FDE > CVKDE (GM > FDE > CVKDE > ISDE)"
    assert order.why == "The same. By means GM is: few rows, far from all others, cost ISDE some samples."


def test_another_first_method_is_named():
    rows = box_rows(ISDE=[1.0], FDE=[5.0], CVKDE=[4.0], GM=[6.0])
    order = ITEMS["figure-levine-boxplot"].findings(results("figure-levine-boxplot", rows))[4]
    assert order.why == "Other cells: GM is first."


@pytest.mark.parametrize(
    ("best", "said"),
    [
        ([9.0, 8.0], "The same order; no sample of a best one is below a random one."),
        ([9.0, 4.0], "The same order; best and random samples overlap."),
        ([1.0, 1.0], "every sample of a best one is below all random ones."),
    ],
)
def test_best_and_random_partitions_are_apart_or_not(best, said):
    groups = {"best": best, "random": [5.0, 5.5], "worst": [2.0, 2.0]}
    rows = [{"group": group, "log_likelihood": v} for group, values in groups.items() for v in values]
    (found,) = ITEMS["figure-partitions-boxplot"].findings(results("figure-partitions-boxplot", rows))
    assert found.why.endswith(said)


@pytest.mark.parametrize(
    ("means", "medians", "protocol", "said"),
    [
        ([3.0, 2.0, 1.0], [3.0, 2.0, 1.0], "clean", "The same sign."),
        ([2.0, 2.6, 1.0, 2.2, 1.9], [3.0, 2.0, 1.0, 0.9, 0.8], "clean", "The same sign, but weak."),
        ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], "clean", "the median row agrees."),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "clean", "Another sign, on other cells or another draw of them."),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "paper", "those of good partitions, most."),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "clean", "Too little spread in distance."),
    ],
)
def test_a_correlation_is_called_what_it_is(means, medians, protocol, said):
    rows = [
        {"edit_distance": i, "paper_edit_distance": i, "log_likelihood": mean, "median_row": median}
        for i, (mean, median) in enumerate(zip(means, medians, strict=True))
    ]
    (found,) = ITEMS["figure-random-walks"].findings(results("figure-random-walks", rows, protocol=protocol))
    assert found.why.endswith(said)


@pytest.mark.parametrize(
    ("n_above", "threshold", "said"),
    [
        (1454, 14.6, "The saved scores' number; the text's is from an earlier run."),
        (1453, 14.6, "THE NUMBER DIFFERS FROM THAT OF THE SAVED SCORES."),
        (2, 15.0, "Other scores: the threshold is 0.1 below the optimum, in the paper 0.517."),
    ],
)
def test_the_number_above_the_threshold_is_compared_where_it_can_be(n_above, threshold, said):
    row = {"n_partitions": 25_719_630, "n_columns": 13, "max_block_size": 5, "count": 25_719_630}
    row |= {"n_above": n_above, "threshold": threshold, "best_score": threshold + 0.1}
    found = ITEMS["figure-landscape"].findings(results("figure-landscape", [row], sha256="a6205cfda4ba6edc"))
    assert [finding.why for finding in found] == ["The same.", said]


@pytest.mark.parametrize(("far", "said"), [(0.5, "The same."), (1.5, "One at distance 3 is 0.5 better.")])
def test_a_better_partition_than_the_optimum_is_told(far, said):
    rows = [
        {"n_above": 2, "edit_distance": d, "paper_edit_distance": d, "log_likelihood": v, "median_row": v}
        for d, v in ((0, 1.0), (3, far))
    ]
    found = ITEMS["figure-best-partitions"].findings(results("figure-best-partitions", rows))
    assert found[1].why == said


@pytest.mark.parametrize(("bdcs", "said"), [(4.0, "The same sign."), (6.0, "Other random samples, five of them")])
def test_the_order_of_the_gaussian_methods_is_compared(bdcs, said):
    shared = {"structure": "4 4 3 3 2", "is_truth": 1, "is_admissible": 1}
    losses = {"ISDE": (5.0, 5.2), "BDCS": (bdcs, bdcs), "empirical": (12.0, 13.0)}
    rows = [shared | {"method": m, "kl_x_1000": v} for m, values in losses.items() for v in values]
    found = ITEMS["table-gaussian"].findings(results("table-gaussian", rows))
    (line,) = [finding for finding in found if "minus" in finding.what]
    assert line.published == "-0.88"
    assert line.why.startswith(said)


def test_a_selection_that_is_not_proved_is_told():
    row = {"k": 2, "d": 5, "seconds": 1.0, "published_seconds": 0.02, "kind": "measured", "is_proved": 0}
    assert running_times.table_findings(results("table-running-times-selection", [row]))[0].why.startswith("NOT ALL")


@pytest.mark.parametrize(("most", "kind", "columns"), [(0.0, "projected", 4), (1e9, "measured", 6)])
def test_projected_seconds_are_in_proportion_to_the_subsets_and_say_so(most, kind, columns, monkeypatch):
    monkeypatch.setattr(running_times, "min_seconds", lambda times, function: (3.0, function()))
    (row,) = running_times._time_scores(6, 3, Settings(size="tiny", jobs=1, seconds=most), []).rows
    assert (row["kind"], row["columns_measured"]) == (kind, columns)
    assert row["seconds"] == pytest.approx(3.0 * len(SubsetFamily(6, 3)) / len(SubsetFamily(columns, 3)))
    shown = running_times.table_findings(results("table-running-times-scores", [{"k": 3, "d": 6, **row}]))[0].measured
    assert shown.endswith("(projected)") == (kind == "projected")
