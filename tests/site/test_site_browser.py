"""The site in a real browser, from disk and without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suite.site.figures import NONE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("There is no chromium; tools/setup_browser.sh installs it.")
        pytest.skip("There is no chromium; tools/setup_browser.sh installs it.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, site: Path) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else trouble.append(r.url))
    page.on("requestfailed", lambda r: trouble.append(f"failed: {r.url}"))
    page.goto((site / "index.html").as_uri())
    yield page
    context.close()
    assert trouble == []


def first_column(page: Page, table: str) -> list[str]:
    return page.locator(f"#{table} tbody th a").all_inner_texts()


def scores(page: Page) -> list[float]:
    texts = page.locator("#ranking tbody td:nth-child(3)").all_inner_texts()
    return [float(text) for text in texts if text != NONE]


def test_a_reader_gets_from_the_index_to_the_run_behind_a_figure(page: Page) -> None:
    page.get_by_role("link", name="Toys, three tasks").first.click()
    assert page.get_by_role("heading", level=1).inner_text() == "Toys, three tasks"
    page.locator("#ranking").get_by_role("link", name="My method").click()
    assert page.get_by_role("heading", name="Where these figures come from").is_visible()
    page.get_by_role("link", name="About this submission").click()
    assert page.get_by_role("heading", level=1).inner_text() == "My method"
    page.get_by_role("link", name="Home").click()
    assert page.url.endswith("index.html")


def test_tables_sort_by_value_with_mouse_and_keyboard(page: Page, site: Path) -> None:
    page.goto((site / "tracks/toy-3.html").as_uri())
    published = first_column(page, "ranking")
    score = page.locator("#ranking th", has_text="Score")
    score.get_by_role("button").click()
    assert score.get_attribute("aria-sort") == "descending"
    numbers = scores(page)
    assert numbers == sorted(numbers, reverse=True)
    assert page.locator("#ranking tbody td:nth-child(3)").last.inner_text() == NONE
    page.keyboard.press("Enter")
    assert score.get_attribute("aria-sort") == "ascending"
    numbers = scores(page)
    assert numbers == sorted(numbers)
    names = page.locator("#ranking th", has_text="Submission")
    names.get_by_role("button").click()
    assert names.get_attribute("aria-sort") == "ascending"
    assert score.get_attribute("aria-sort") is None
    assert sorted(first_column(page, "ranking")) == sorted(published)


def test_nothing_is_lost_without_javascript(browser: Browser, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / "tracks/toy-3.html").as_uri())
    assert first_column(page, "ranking")[0] == "My method"
    assert page.locator("svg.chart").count() == 3
    assert page.get_by_role("button").count() == 0
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_text_is_legible_and_pages_do_not_overflow(browser: Browser, site: Path, scheme: str, width: int) -> None:
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 800}
    )
    page = context.new_page()
    for path in sorted(site.glob("*.html")) + [next(site.glob(f"{d}/*.html")) for d in ("runs", "submissions")]:
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        faint = page.evaluate(_FAINT)
        assert faint == [], path
    page.goto((site / "tracks/toy-3.html").as_uri())
    assert page.evaluate(_FAINT) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


_FAINT = """() => {  // WCAG 2.2: 4.5 to 1 between text and what lies under it
  const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
  const over = (top, under) => top.slice(0, 3).map((v, i) => v * top[3] + under[i] * (1 - top[3]));
  const linear = v => v <= 10 ? v / 3294.6 : ((v / 255 + .055) / 1.055) ** 2.4;
  const light = rgb => { const [r, g, b] = rgb.map(linear);
    return .2126 * r + .7152 * g + .0722 * b; };
  const ground = element => { const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]); };
  const found = new Set();
  for (const e of document.querySelectorAll('body *:not(svg *)')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
    const [a, b] = [light(over(parse(getComputedStyle(e).color), ground(e))), light(ground(e))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) found.add(e.className + '|' + e.tagName + ' ' + ratio.toFixed(2));
  }
  return [...found];
}"""
