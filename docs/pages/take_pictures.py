"""The pictures of the pages in the README, taken of a service that runs (`make demo` shows its login link).

    python docs/pages/take_pictures.py 'http://127.0.0.1:8400/login?code=...' sweep=/sweeps/swp_... run=/runs/run_...

Each NAME=PATH gives NAME-light.png and NAME-dark.png beside this file. Needs Chromium.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1280, 860
SETTLED_MS = 2500  # until charts are drawn


def main(link: str, *wanted: str) -> None:
    """Log in by the link, which is good once, and take every picture."""
    with sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("chromium-headless-shell")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(link)
        page.wait_for_load_state()
        at = urlsplit(link)
        for one in wanted:
            name, _, path = one.partition("=")
            for scheme in ("light", "dark"):
                take(page, f"{at.scheme}://{at.netloc}{path}", f"{name}-{scheme}", scheme)
        browser.close()


def take(page: Page, url: str, name: str, scheme: str) -> None:
    """The top of one page, in one colour scheme."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of two words
    page.goto(url)
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=HERE / f"{name}.png")
    print(HERE / f"{name}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
