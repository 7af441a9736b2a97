"""Open every page of the built site in a real browser: ``python -m website.check [FOLDER]``.

No page may log an error, load anything from elsewhere, link to a page or an anchor that does not exist, or be wider
than a phone. Search must find what people look for. Screenshots of some pages go to ``FOLDER/screenshots``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from playwright.sync_api import sync_playwright

from ctxlint.addresses import SITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

_PREFIX = "/" + SITE.split("/", 3)[3]
_PHONE, _DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
_PICTURES = ("", "rules/", "rules/CTX203/", "tutorial/")
_SEARCHES = {"save_for_backward": "CTX301", "CTX203": "CTX203"}
"""What people type, and the code of a rule whose page must be among the results."""

_LOOK = """() => ({
  links: [...document.querySelectorAll("a[href]")].map((each) => each.href),
  anchors: [...document.querySelectorAll("[id]")].map((each) => each.id),
  title: document.title,
  width: document.scrollingElement.scrollWidth,
})"""


class Seen(NamedTuple):
    """What one page holds."""

    links: list[str]
    anchors: set[str]


def main() -> int:
    """Check the site; print what is wrong, and return the exit code."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/website")
    with _served(folder / "site") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
        seen, problems = _visit(browser, address, _pages(folder / "site"))
        problems += _dead_links(seen, address)
        problems += _behaviour(browser, address)
        _screenshots(browser, address, folder / "screenshots")
        browser.close()
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"{len(seen)} pages, {sum(len(each.links) for each in seen.values())} links, {len(problems)} problems")
    return bool(problems)


def _chromium() -> str:
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if not found:
        raise SystemExit("no Chromium on the PATH; set CHROMIUM")
    return found


@contextlib.contextmanager
def _served(site: Path) -> Iterator[str]:
    """The address of the site on this machine, below the path that it has on the web."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Requests are not worth a line."""

    with tempfile.TemporaryDirectory() as root:
        (Path(root) / _PREFIX.strip("/")).symlink_to(site.resolve())
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{_PREFIX}"
        finally:
            server.shutdown()


def _pages(site: Path) -> list[str]:
    found = (path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    return sorted(path.removesuffix("index.html") for path in found if path != "404.html")


def _visit(browser: Browser, address: str, paths: list[str]) -> tuple[dict[str, Seen], list[str]]:
    """Load every page on a phone, and note what it holds and what goes wrong."""
    problems: list[str] = []
    seen: dict[str, Seen] = {}
    page = browser.new_page(viewport=_PHONE)  # type: ignore[arg-type]
    here = ""

    def note(what: str) -> None:
        problems.append(f"/{here}: {what}")

    page.on("console", lambda message: note(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: note(str(error)))
    page.on("response", lambda response: None if response.status < 400 else note(f"{response.status}: {response.url}"))
    page.on(
        "request", lambda request: None if request.url.startswith((address, "data:", "blob:")) else note(request.url)
    )
    for here in paths:
        page.goto(address + here, wait_until="load")
        found: dict[str, Any] = page.evaluate(_LOOK)
        if found["width"] > _PHONE["width"]:
            note(f"{found['width']} pixels wide on a phone of {_PHONE['width']}")
        if not found["title"].endswith("ctxlint"):
            note(f"is titled {found['title']!r}")
        seen[here] = Seen(found["links"], set(found["anchors"]))
    page.close()
    return seen, problems


def _dead_links(seen: dict[str, Seen], address: str) -> list[str]:
    problems = []
    for path, page in seen.items():
        for link in page.links:
            target, fragment = urldefrag(urljoin(address + path, link))
            if not target.startswith(address):
                continue
            where = target.removeprefix(address).partition("?")[0].removesuffix("index.html")
            anchored = not fragment or unquote(fragment) in getattr(seen.get(where), "anchors", ())
            if not (where in seen and anchored) and not where.endswith((".json", ".png", ".svg")):
                problems.append(f"/{path}: dead link to /{where}{'#' + fragment if fragment else ''}")
    return sorted(set(problems))


def _behaviour(browser: Browser, address: str) -> list[str]:
    """Check search, filters and dark mode."""
    problems = []
    page = browser.new_page(viewport=_DESK, color_scheme="dark")  # type: ignore[arg-type]
    page.goto(address)
    if page.evaluate("document.body.dataset.mdColorScheme") != "slate":
        problems.append("dark mode is not dark")
    for words, code in _SEARCHES.items():
        page.goto(address)
        if not _finds(page, words, code):
            problems.append(f"search for {words!r} does not find {code}")
    page.goto(f"{address}rules/?default=off")
    rows = ".rules tbody tr"
    shown = page.locator(f"{rows}:visible").count()
    expected = page.locator(f'{rows}[data-default="off"]').count()
    if not 0 < shown == expected:
        problems.append(f"the filter shows {shown} rules rather than {expected}")
    page.select_option("#rule-filters [name=default]", "")
    if page.locator(f"{rows}:visible").count() != page.locator(rows).count():
        problems.append("without a filter, some rules are hidden")
    page.close()
    return problems


def _finds(page: Page, words: str, code: str) -> bool:
    try:
        page.keyboard.press("/")
        page.get_by_placeholder("Search").fill(words, timeout=10_000)
        page.locator(f'a[href*="/rules/{code}/"]:visible').first.wait_for(timeout=10_000)
    except Exception:  # noqa: BLE001  (whatever keeps the result from showing, it is not found)
        return False
    return True


def _screenshots(browser: Browser, address: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, viewport, scheme in (("desk", _DESK, "light"), ("phone", _PHONE, "dark")):
        page = browser.new_page(viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
        for path in _PICTURES:
            page.goto(address + path)
            page.screenshot(path=folder / f"{path.strip('/').replace('/', '-') or 'home'}-{name}.png")
        page.close()


if __name__ == "__main__":
    sys.exit(main())
