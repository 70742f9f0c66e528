"""The page in a real browser, without a network: what it asks for, what it shows, who can use it."""

import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product

import numpy as np
import pytest

from isde import TreeISDE
from isde.report import render
from pages import HOSTILE, everything, fitted, hostile_table

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not here: pip install playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not here: apt-get install chromium")

WIDTHS = {"desktop": (1200, 900), "phone": (390, 844)}
SCREENS = list(product(WIDTHS, ("light", "dark")))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    table = hostile_table()
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(everything(fitted(table), table)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tree_file(tmp_path_factory):
    X = np.random.default_rng(0).normal(size=(150, 5)).cumsum(axis=1)
    model = TreeISDE(5, marginal="gaussian", split="paper", random_state=0).fit(X)
    path = tmp_path_factory.mktemp("tree") / "report.html"
    return model.report(path, X)


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium, file):
    """Opens the page, and keeps what it asked for and complained of."""
    contexts = []

    def open_page(screen="desktop", scheme="light", page_of=file, **options):
        width, height = WIDTHS[screen]
        context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(page_of.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def visible_articles(page):
    return [article.get_attribute("data-block") for article in page.query_selector_all("article.block:visible")]


@pytest.mark.parametrize(("screen", "scheme"), SCREENS)
def test_nothing_is_asked_for_and_nothing_complained_of(opened, file, screen, scheme):
    page = opened(screen, scheme)
    page.mouse.wheel(0, 5000)
    assert page.asked == [file.as_uri()]
    assert page.complaints == []


@pytest.mark.parametrize(("screen", "scheme"), SCREENS)
def test_axe_finds_nothing(opened, screen, scheme):
    page = opened(screen, scheme)
    page.click("#all")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    found = axe.Axe().run(page)
    assert found.response["violations"] == [], found.generate_report()
    assert len(found.response["passes"]) > 25  # it did look


@pytest.mark.parametrize(("screen", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_axe_finds_nothing_on_the_page_of_a_tree_and_its_cliques_open(opened, tree_file, screen, scheme):
    page = opened(screen, scheme, page_of=tree_file)
    assert (page.asked, page.complaints) == ([tree_file.as_uri()], [])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    links = page.query_selector_all(".cliques a")
    assert len(links) > 1
    for link in links:
        link.click()
        assert visible_articles(page) == [link.get_attribute("data-block")]
    page.click("#all")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    found = axe.Axe().run(page)
    assert found.response["violations"] == [], found.generate_report()


@pytest.mark.parametrize("screen", WIDTHS)
def test_a_page_is_never_wider_than_its_screen(opened, screen):
    page = opened(screen)
    page.click("#all")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("screen", WIDTHS)
def test_a_click_on_a_block_shows_its_density_and_numbers(opened, screen):
    page = opened(screen)
    links = page.query_selector_all(".diagram:visible a")
    assert len(links) == len(page.query_selector_all("article.block"))
    for link in links:
        link.click()
        block = link.get_attribute("data-block")
        assert visible_articles(page) == [block]
        article = page.locator(f"#block-{block}")
        assert article.locator("svg.picture").count() >= 1
        assert page.evaluate("document.activeElement.id") == f"title-{block}"
        assert "chosen" in page.locator(f".diagram:visible a[data-block='{block}']").get_attribute("class")
    page.click("#all")
    assert len(visible_articles(page)) == len(links)


def test_the_pointer_over_a_block_marks_it_everywhere(opened):
    page = opened()
    link = page.locator(".diagram:visible a").nth(1)
    block = link.get_attribute("data-block")
    link.hover()
    marked = page.query_selector_all(f"[data-block='{block}'].hot")
    assert {part.evaluate("one => one.tagName.toLowerCase()") for part in marked} >= {"rect", "tr", "a"}
    page.mouse.move(2, 2)
    assert page.query_selector_all(".hot") == []


def test_without_scripts_every_block_is_shown_and_links_lead_there(opened):
    page = opened(java_script_enabled=False)
    assert len(page.query_selector_all("article.block:visible")) == len(page.query_selector_all("article.block"))
    assert page.query_selector_all(".script-only:visible") == []
    page.locator(".diagram:visible a").last.click()
    assert "#block-" in page.url


def test_the_keyboard_reaches_everything(opened):
    page = opened()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    wanted = page.evaluate(
        """() => { let n = 0; const seen = (one) => one.getClientRects().length > 0;
        document.querySelectorAll('a[href], button, summary, [tabindex="0"]').forEach((one) => {
            if (seen(one)) one.dataset.wanted = n++; });
        return n; }"""
    )
    reached = set()
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.wanted"))
    assert {str(i) for i in range(wanted)} <= reached


def test_enter_opens_a_block(opened):
    page = opened()
    link = page.locator(".diagram:visible a").nth(2)
    link.focus()
    page.keyboard.press("Enter")
    assert visible_articles(page) == [link.get_attribute("data-block")]


def test_cells_of_the_matrix_tell_what_the_table_has(opened):
    page = opened()
    page.focus("#heat")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    order = [int(c) for c in page.get_attribute("#heat", "data-order").split()]
    pair = " ".join(map(str, sorted((order[2], order[1]))))
    cells = page.locator(f"#pair-table tr[data-p='{pair}'] > *").all_text_contents()
    said = page.inner_text("#readout")
    assert f"gain {cells[1]} nats, error {cells[2]}, chance {cells[3]}" in said
    cell, left, top = (float(page.get_attribute("#heat", f"data-{name}")) for name in ("cell", "label", "top"))
    page.locator("#heat svg").hover(position={"x": left + 7.5 * cell, "y": top + 4.5 * cell})
    pair = " ".join(map(str, sorted((order[4], order[7]))))
    cells = page.locator(f"#pair-table tr[data-p='{pair}'] > *").all_text_contents()
    assert page.inner_text("#readout").startswith(" ".join(cells[0].split())[:10])
    assert f"gain {cells[1]} nats" in page.inner_text("#readout")


def test_hostile_names_are_text_and_nothing_else(opened):
    page = opened()
    page.click("#all")
    assert page.evaluate("window.hacked") is None
    assert page.query_selector("#stray, img, body b") is None
    titles = page.locator("article.block h3").all_text_contents()
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[3], HOSTILE[7]):
        assert any(name in title for title in titles), name
    assert "secret" not in page.content()


@pytest.fixture
def server():
    """Answers on this machine, and keeps who asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/", asked
        running.shutdown()


def test_the_policy_forbids_everything_else(opened, server):
    (address, asked), page = server, opened()
    page.context.set_offline(False)
    page.evaluate(
        """(address) => {
        const add = (tag, more) => document.body.append(Object.assign(document.createElement(tag), more));
        add('script', { textContent: 'window.hacked = 9' });
        add('style', { textContent: 'body { color: rgb(1, 2, 3) }' });
        add('img', { src: address + 'picture' });
        add('iframe', { src: address + 'frame' });
        return fetch(address + 'fetched').catch(() => 'refused'); }""",
        address,
    )
    page.wait_for_timeout(100)
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("getComputedStyle(document.body).color") != "rgb(1, 2, 3)"
    assert asked == []
    assert len(page.complaints) >= 5  # one for each
    page.goto(address)
    assert asked[0] == "/"  # there it is


def test_paper_shows_all_blocks(opened):
    page = opened()
    page.emulate_media(media="print")
    assert len(visible_articles(page)) == len(page.query_selector_all("article.block"))
    assert page.query_selector_all("nav:visible, button:visible") == []
