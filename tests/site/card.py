"""`python -m tests.site.card`: the picture beside a link to the site.

Chromium draws it from the logo, and from the name and the sentence in mkdocs.yml.
"""

import shutil
from html import escape
from pathlib import Path

from mkdocs.config import load_config
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs/assets"
SIZE = {"width": 1200, "height": 630}
FONT = "vendor/fonts/source-sans-3-latin-wght-normal.woff2"
PAGE = """<!doctype html><meta charset="utf-8"><style>
@font-face {{ font-family: S; font-weight: 200 900; src: url({font}) }}
body {{
  display: grid; grid-template-columns: 1fr 300px; gap: 70px; align-items: center;
  box-sizing: border-box; height: 100vh; margin: 0; padding: 0 80px;
  font: 40px/1.35 S; color: #dbe2ee; background: #24304a;
}}
h1 {{
  margin: 0 0 28px; font-size: 84px; line-height: 1.05; letter-spacing: -0.02em;
  color: #fff;
}}
p {{ margin: 0 }}
img {{ width: 300px }}
</style><div><h1>{name}</h1><p>{sentence}</p></div><img src="logo.svg">"""


def main() -> None:
    config = load_config(str(ROOT / "mkdocs.yml"))
    html = PAGE.format(
        font=FONT,
        name=escape(config.site_name),
        sentence=escape(config.site_description or ""),
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE)
        page.goto(f"{ASSETS.as_uri()}/")  # From here it may read these files.
        page.set_content(html)
        page.evaluate("document.fonts.ready.then(() => null)")
        page.screenshot(path=ASSETS / "card.png")
        browser.close()


if __name__ == "__main__":
    main()
