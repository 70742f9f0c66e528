"""The page and its numbers, without a browser: what is on it, what is not, and where it comes from."""

import csv
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from click.testing import CliRunner

import isde
from isde import ISDE, TreeISDE
from isde.cli import main
from isde.data.table import Table
from isde.errors import InputError, ISDEWarning
from isde.fit_record import fingerprint
from isde.report import figures, render, report_numbers
from isde.synthetic import make_block_gaussian
from pages import COMPARISON, HOSTILE, everything, fitted, hostile_table


@pytest.fixture(scope="module")
def table():
    return hostile_table()


@pytest.fixture(scope="module")
def model(table):
    return fitted(table)


@pytest.fixture(scope="module")
def numbers(model, table):
    return everything(model, table)


class Reader(HTMLParser):
    """Elements with their attributes, figures and tables in their order, and the text."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def leaves(value):
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]


# --- numbers ---------------------------------------------------------------------------------------------------


def test_numbers_are_plain_json(numbers):
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers


def test_numbers_are_those_of_the_model(numbers, model, table):
    scores = model.subset_scores_
    for block, found in zip(model.partition_, numbers["blocks"], strict=True):
        assert found["columns"] == [HOSTILE[c] for c in block]
        assert found["gain"] == scores.gain(block)
        assert found["error"] == float(scores.gain_errors[scores.subsets.index(block)])
    assert numbers["proof"]["proof"] == "proved"
    assert numbers["proof"]["bound"] == model.selection_.bound
    assert len(numbers["pairs"]["listed"]) == 36
    gains = [pair["gain"] for pair in numbers["pairs"]["listed"]]
    assert gains == sorted(gains, reverse=True)
    assert numbers["fit"]["fingerprint"] == fingerprint(table.X, table.names)
    assert numbers["fit"]["rows_given"]["same"] is True
    assert numbers["low_rows"]["n_rows"] == 2


def test_a_page_without_rows_says_what_is_missing(model):
    numbers = report_numbers(model)
    assert numbers["held_out"] is None
    assert numbers["low_rows"] is None
    assert numbers["blocks"][0]["shape"]["columns"][0]["counts"] is None
    text = " ".join(Reader(render(numbers)).text)
    assert "Not computed: a model file holds no rows." in text


def test_other_rows_than_those_fitted_are_noticed(model, table):
    other = Table(table.X[:50], table.names)
    numbers = report_numbers(model, other)
    assert numbers["fit"]["rows_given"]["same"] is False
    assert "not those that were fitted" in render(numbers)


def test_a_loaded_model_knows_less_and_says_so(model, table, tmp_path):
    model.set_params(split="paper")  # a ShuffleSplit is kept, too, but this is shorter
    model.save(tmp_path / "model.isde")
    numbers = report_numbers(isde.load(tmp_path / "model.isde"), table)
    assert numbers["fit"]["fingerprint"] is None
    assert numbers["fit"]["rows_given"]["same"] is None
    assert "not kept in a model file" in render(numbers)


def test_no_row_of_the_data_is_on_the_page_or_among_the_numbers(table, model):
    """Not one value of any column, as far as five digits tell, beyond what chance has among as many numbers."""
    distinct = Table(np.round(table.X, 12), table.names)
    numbers = report_numbers(model, distinct)
    values = {f"{abs(value):.9g}" for value in distinct.X.ravel()}
    kept = {f"{abs(leaf):.9g}" for leaf in leaves(numbers) if isinstance(leaf, float)}
    assert not values & kept
    page = render(numbers)
    assert not [value for value in values if value in page]


def test_cells_with_few_rows_are_left_out(table, model):
    counts = [leaf for block in report_numbers(model, table)["blocks"] for leaf in leaves(block["shape"]["pairs"])]
    cells = [
        count
        for block in report_numbers(model, table)["blocks"]
        for shape in (*block["shape"]["pairs"], *block["shape"]["columns"])
        for count in leaves(shape["counts"])
    ]
    assert counts
    assert set(cells) & {1, 2} == set()
    assert max(cells) >= 3


# --- the page --------------------------------------------------------------------------------------------------


def test_a_page_holds_no_address_and_forbids_everything_else(numbers):
    page = render(numbers)
    reader = Reader(page)
    policy = next(meta["content"] for meta in reader.all("meta") if meta.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    for _, attributes in reader.elements:
        assert not {"src", "style", "srcset", "data"} & set(attributes), attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", page)


def test_names_are_escaped_everywhere(numbers):
    page = render(numbers)
    for name in (name for name in HOSTILE if "<" in name):
        assert name not in page
    reader = Reader(page)
    assert len(reader.all("script")) == 1
    assert not reader.all("img")
    assert not reader.all("i")
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "secret" not in page  # folders of the data are nobody's business


def test_every_name_is_on_the_page_as_text(numbers):
    text = " ".join(" ".join(Reader(render(numbers)).text).split())
    for name in (*HOSTILE[:5], HOSTILE[7], HOSTILE[8]):
        assert " ".join(name.split()) in text, name


def test_every_figure_has_a_table(numbers):
    """In each section with figures there are tables, and after the last figure at least one of them."""
    page = render(numbers)
    sections = page.split("<section")[1:]
    drawn = [section for section in sections if "<figure" in section]
    assert len(drawn) == 5
    for section in drawn:
        last = section.rindex("<figure")
        assert "<table" in section[last:], section[:80]
    for article in page.split("<article")[1:]:
        assert article.count("<table") >= 1


def test_ids_are_unique_and_links_lead_somewhere(numbers):
    reader = Reader(render(numbers))
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    links = {attributes["href"][1:] for attributes in reader.all("a")}
    labelled = {attributes["aria-labelledby"] for _, attributes in reader.elements if "aria-labelledby" in attributes}
    assert links | labelled <= set(ids)


def test_what_the_policy_names_is_what_is_on_the_page(numbers):
    import base64
    import hashlib

    page = render(numbers)
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page.replace("&#39;", "'")


def test_the_page_is_the_same_for_the_same_numbers(numbers):
    assert render(numbers) == render(json.loads(json.dumps(numbers)))


def test_gains_errors_and_chance_are_written_as_they_are(table):
    model = ISDE(2, marginal="copula", split="structure", random_state=0).fit(Table(table.X[:80, 3:6], tuple("abc")))
    numbers = report_numbers(model)
    page = render(numbers)
    for block in numbers["blocks"]:
        if len(block["columns"]) > 1:
            assert f"<strong>{block['gain']:.4f}</strong> ± {block['error']:.4f} nats" in page
            assert f"chance gives {block['chance']:.4f}" in page


@pytest.mark.parametrize(
    ("proof", "rank", "said"),
    [
        ("proved", 1, "this is the best for the 129 subset scores: <strong>proved"),
        ("not checked again", 1, "not checked again, which would take long"),
        ("not proved", 1, "<strong>not proved</strong>"),
        ("proved", 3, "It is number 3 of"),
    ],
)
def test_a_proof_is_stated_as_it_is(numbers, proof, rank, said):
    changed = numbers | {"proof": numbers["proof"] | {"proof": proof, "rank": rank}}
    assert said in render(changed)


def test_single_columns_and_one_block_have_pages(table):
    alone = ISDE(1, marginal="gaussian", split="paper", random_state=0).fit(table.X[:, :2])
    assert "No columns move together" in render(report_numbers(alone, table.X[:, :2]))
    X, _ = make_block_gaussian([7], 80, sigma=0.9, random_state=0)
    one = ISDE(7, marginal="gaussian", split="paper", random_state=0).fit(X)
    numbers = report_numbers(one)
    assert len(numbers["blocks"][0]["shape"]["pairs"]) == 6
    assert "6 of 21 pairs" in render(numbers)
    column = ISDE(1, marginal="gaussian", split="paper", random_state=0).fit(X[:, :1])
    assert "1 block of 1 column" in render(report_numbers(column))


def test_a_page_of_fifty_columns_is_below_a_megabyte():
    X, _ = make_block_gaussian([3] * 12 + [2] * 6 + [1] * 2, 300, random_state=0)
    with pytest.warns(ISDEWarning, match="try max_block_size=4"):
        model = ISDE(3, marginal="gaussian", split="paper", random_state=0).fit(X)
    assert len(model.partition_) < 30
    assert len(render(report_numbers(model, X)).encode()) < 1_000_000


def test_numbers_that_do_not_exist_are_dashes(numbers):
    blank = json.loads(json.dumps(numbers))
    for block in blank["blocks"]:
        block["error"] = block["bandwidth"] = None
    blank["proof"]["bound"] = None
    assert "its error is not known from a single split" in render(blank)


@pytest.fixture(scope="module")
def walk():
    """A walk of five steps, each on the one before, and a column alone."""
    X = np.random.default_rng(0).normal(size=(200, 6))
    X[:, :5] = X[:, :5].cumsum(axis=1)
    return Table(X, ("<a>", "b", "c", "d", "e", "alone"))


@pytest.fixture(scope="module")
def tree(walk):
    return TreeISDE(2, marginal="copula", split="paper", random_state=0).fit(walk)


def test_a_tree_of_blocks_has_a_page(tree, walk):
    stability = tree.stability(walk, 3, n_null=1, random_state=0)
    numbers = report_numbers(tree, walk, stability=stability)
    scores = tree.subset_scores_
    assert numbers["structure"] == "tree"
    assert [tuple(block["positions"]) for block in numbers["blocks"]] == list(tree.cliques_)
    for group, found in zip(tree.partition_, numbers["groups"], strict=True):
        own = [block for block in tree.cliques_ if set(block) <= set(group)]
        shared = [block for block in tree.separators_ if set(block) <= set(group)]
        assert found["gain"] == pytest.approx(sum(map(scores.gain, own)) - sum(map(scores.gain, shared)))
    assert numbers["proof"]["gain"] == pytest.approx(tree.selection_.score - numbers["proof"]["independence"], abs=1e-6)
    assert numbers["proof"]["n_partitions"] is None
    inside = {tuple(pair["positions"]) for pair in numbers["pairs"]["listed"] if pair["inside"]}
    assert inside == set(tree.edges_)
    apart = {tuple(pair["positions"]) for pair in numbers["pairs"]["listed"] if pair["apart"]}
    assert apart == {(c, 5) for c in range(5)}
    shared = [tuple(walk.names.index(name) for name in link["columns"]) for link in numbers["hangs_on"]]
    assert sorted(shared) == sorted(tree.separators_)
    assert numbers["runners_up"][0]["below"] > 0  # no partition is as good
    assert numbers["held_out"]["tree_gain"] > 0
    assert numbers["stability"]["same_partition"] == stability.same_tree


def test_the_page_of_a_tree_says_what_it_is(tree, walk):
    page = render(report_numbers(tree, walk))
    assert f"{len(tree.cliques_)} cliques of 6 columns" in page
    assert "Of all trees with cliques of at most 2 columns this is the best for the 21 subset scores" in page
    assert "Cliques, and what they share" in page
    assert "Tree over blocks" in page
    assert "best partitions into blocks, beside the tree" in page
    ids = [attributes["id"] for _, attributes in Reader(page).elements if "id" in attributes]
    assert len(set(ids)) == len(ids)


def test_a_tree_that_is_not_proved_is_not_called_the_best(tree):
    numbers = report_numbers(tree)
    page = render(numbers | {"proof": numbers["proof"] | {"proof": "not proved"}})
    assert "this is the best that was found" in page
    assert "<strong>not proved</strong>" in page


def test_cliques_stand_below_those_they_hang_on(tree):
    numbers = report_numbers(tree)
    drawn = figures.clique_tree(numbers)
    y = {box["place"]: box["y"] for box in drawn["boxes"]}
    assert set(y) == {i for i, clique in enumerate(tree.cliques_) if len(clique) > 1}
    for link, line in zip(numbers["hangs_on"], drawn["lines"], strict=True):
        assert y[link["block"]] > y[link["on"]]
        assert line["label"] == ", ".join(link["columns"])


# --- geometry --------------------------------------------------------------------------------------------------


def test_contours_of_a_disc_are_its_edge():
    axis = np.linspace(-2, 2, 81)
    density = np.maximum(0.0, 2 - np.hypot(axis[:, None], axis))
    pair = {"x": [-2, 2], "y": [-2, 2], "density": density.tolist(), "levels": [1.0], "counts": None}
    (region,) = figures.contours(pair | {"columns": ["a", "b"]})["regions"]
    frame = figures.Frame([-2, 2], [-2, 2])
    start, *steps = (tuple(map(float, part.split())) for part in region.strip("Mz").split("l"))
    points = np.cumsum([start, *steps], axis=0)
    radius = np.hypot((points[:, 0] - frame.across(0)) / 53, (points[:, 1] - frame.up(0)) / 46)
    assert radius == pytest.approx(np.ones(len(points)), abs=0.02)


def test_shades_grow_with_the_gain():
    shades = [figures.shade_of(gain, 1.0) for gain in np.linspace(0.001, 1, 200)]
    assert shades == sorted(shades)
    assert (shades[0], shades[-1], set(shades)) == (1, 7, set(range(1, 8)))


def test_every_pair_that_passes_has_its_two_cells(numbers):
    heat = figures.heatmap(numbers)
    cells = sum(path.count("M") for path in heat["cells"].values())
    assert cells == 2 * sum(pair["passes"] for pair in numbers["pairs"]["listed"])


# --- in Python and at the terminal -----------------------------------------------------------------------------


def call(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder and its data."""
    folder = tmp_path_factory.mktemp("run")
    with open(folder / "data.csv", "w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines)
        writer.writerow(["a", "b", "<c>", "d"])
        writer.writerows(hostile_table(100).X[:, :4].tolist())
    fast = ("--marginal", "gaussian", "-k", "4", "--quiet", "--jobs", "1")
    answer = call("fit", folder / "data.csv", "-o", folder / "run", "--report", folder / "run" / "report.html", *fast)
    assert answer.exit_code == 0, answer.output
    return folder


def test_a_model_writes_its_page(model, table, tmp_path):
    found = model.report(tmp_path / "page.html", table)
    assert found == tmp_path / "page.html"
    assert found.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("path", ["", "missing/page.html"])
def test_a_page_that_has_no_place_is_refused(model, tmp_path, path):
    with pytest.raises(InputError, match="give the name of a file in a folder that exists"):
        model.report(tmp_path / path)


def test_a_fit_writes_its_page_beside_the_model(run):
    page = (run / "run" / "report.html").read_text(encoding="utf-8")
    assert "data.csv" in page
    assert str(run) not in page
    assert "the same that were fitted" in page
    summary = json.loads((run / "run" / "summary.json").read_text())
    assert summary["fit"]["fingerprint"] in page


def test_a_report_of_a_run_has_what_the_run_remembers(run, tmp_path):
    answer = call("report", run / "run", "-o", tmp_path / "page.html", "--json", "--quiet")
    assert answer.exit_code == 0, answer.output
    numbers = json.loads(answer.stdout)
    assert numbers["fit"]["n_rows"] == 100
    assert numbers["held_out"]["n_scored"] == 20
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == render(numbers)
    model = isde.load(run / "run")
    assert [block["gain"] for block in numbers["blocks"]] == [model.subset_scores_.gain(b) for b in model.partition_]


def test_a_report_with_rows_stability_and_comparison(run, tmp_path):
    (tmp_path / "cmp").mkdir()
    (tmp_path / "cmp" / "comparison.json").write_text(json.dumps(COMPARISON))
    options = ("--data", run / "data.csv", "--stability", "3", "--comparison", tmp_path / "cmp", "--jobs", "1")
    answer = call("report", run / "run", "--json", "--quiet", *options)
    assert answer.exit_code == 0, answer.output
    numbers = json.loads(answer.stdout)
    assert numbers["stability"]["n_resamples"] == 3
    assert [method["method"] for method in numbers["comparison"]["methods"]] == ["isde", "<i>fde</i>", "gm"]
    assert numbers["fit"]["rows_given"]["same"] is True
    assert "&lt;i&gt;fde" in render(numbers)


def test_a_report_goes_into_the_run_by_default(run):
    (run / "run" / "report.html").unlink()
    assert call("report", run / "run", "--quiet").exit_code == 0
    assert (run / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--stability", "3"], "--stability needs the rows: give --data FILE."),
        (["--comparison", "nowhere"], "is no folder made by isde compare"),
        (["-o", "no/such/folder.html"], "is no folder"),
    ],
)
def test_a_report_that_cannot_be_made_is_one_sentence(run, options, complaint):
    answer = call("report", run / "run", *options)
    assert answer.exit_code == 2
    assert complaint in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_fit_refuses_a_page_without_a_place_before_it_starts(run, tmp_path):
    answer = call("fit", run / "data.csv", "--report", tmp_path / "no" / "page.html", "--quiet")
    assert answer.exit_code == 2
    assert "is no folder" in answer.stderr


def test_without_jinja2_a_report_says_what_to_install(run, monkeypatch, model, tmp_path):
    from importlib.util import find_spec as find

    monkeypatch.setattr("isde.report.page.find_spec", lambda name: None if name == "jinja2" else find(name))
    with pytest.raises(InputError, match=r'Reports need jinja2: pip install "isde\[report\]"'):
        model.report(tmp_path / "page.html")
    answer = call("report", run / "run", "--json", "--quiet")
    assert answer.exit_code == 0  # numbers need no page
