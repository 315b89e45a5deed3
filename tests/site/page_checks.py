"""A page read strictly: every element closed, every id unique, nothing fetched from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag

VOID = {"meta", "link", "br", "img", "input", "hr", "wbr"}
FETCHING = {"src", "srcset", "data", "poster", "background", "action", "formaction", "manifest", "ping", "xlink:href"}


class Page(HTMLParser):
    """One parsed page; raises AssertionError where it is malformed."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.path = path
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.labels: list[str] = []
        self.hrefs: list[tuple[str, str]] = []
        self.scripts = 0
        self.headings: list[int] = []
        self.text: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert not self.open, f"{path.name}: never closed: {self.open}"

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag in {"h1", "h2", "h3", "h4"}:
            self.headings.append(int(tag[1]))
        if tag == "script":
            self.scripts += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)
        assert tag in VOID or "svg" in self.open, f"{self.path.name}: <{tag} /> is not void"

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{self.path.name}: </{tag}> closes nothing"
        assert self.open[-1] == tag, f"{self.path.name}: </{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in {"script", "style"}:
            assert not data.strip(), f"{self.path.name}: a script or style of its own"
        self.text.append(data)

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{self.path.name}: an attribute is given twice in <{tag}>"
        for name, value in attrs:
            assert not name.startswith("on"), f"{self.path.name}: event handler {name}"
            assert name != "style", f"{self.path.name}: style attribute"
            if name == "id":
                assert value, f"{self.path.name}: an id is empty"
                assert " " not in value, f"{self.path.name}: the id {value!r} has a space"
                assert value not in self.ids, f"{self.path.name}: the id {value!r} is given twice"
                self.ids.add(value)
            if name in {"aria-labelledby", "for"}:
                self.references += (value or "").split()
            if name == "href":
                self.hrefs.append((tag, value or ""))
            if name in FETCHING:
                assert tag == "script", f"{self.path.name}: <{tag} {name}> fetches {value!r}"
                assert "//" not in (value or ""), f"{self.path.name}: <{tag} {name}> fetches {value!r}"


def check_site(folder: Path) -> dict[str, Page]:
    """Read every page of a site and follow every link; the pages by path."""
    pages = {str(f.relative_to(folder)): Page(f) for f in sorted(folder.rglob("*.html"))}
    for page in pages.values():
        assert set(page.references) <= page.ids, f"{page.path.name}: refers to {set(page.references) - page.ids}"
        assert page.scripts == 1
        assert page.headings.count(1) == 1
        steps = zip(page.headings, page.headings[1:], strict=False)
        assert all(after - before <= 1 for before, after in steps), f"{page.path.name}: a heading level is skipped"
        for tag, href in page.hrefs:
            _check_link(page, pages, folder, tag, href)
    return pages


def _check_link(page: Page, pages: dict[str, Page], folder: Path, tag: str, href: str) -> None:
    if tag == "a" and href.startswith("https://"):
        return
    if tag == "link" and href == "data:,":
        return
    assert ":" not in href, f"{page.path.name}: <{tag}> leads to {href!r}"
    assert not href.startswith("/"), f"{page.path.name}: <{tag}> leads to {href!r}"
    target, fragment = urldefrag(href)
    file = (page.path.parent / target).resolve() if target else page.path
    assert file.is_file(), f"{page.path.name}: {href!r} leads nowhere"
    assert file.is_relative_to(folder.resolve())
    if fragment:
        assert fragment in pages[str(file.relative_to(folder.resolve()))].ids, f"{href!r} leads nowhere"
