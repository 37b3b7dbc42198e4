#!/usr/bin/env python3
"""Dead links: in the README and the pages beside it, in docs/ and in those of the examples, and in the site. Only what lies in this repository is looked at; nothing is fetched.

    links.py                 the links of the Markdown files: files, and headings in them
    links.py --site BUILD    makes the site and looks at every link, image and anchor of its pages, and whether the references are whole; exit status 77
                             where Sphinx is missing
"""

import html.parser
import pathlib
import re
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]


def markdown_pages():
    return [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").glob("*/README.md"))]


def without_code(text):
    text = re.sub(r"(?ms)^```.*?^```", "", text)
    return re.sub(r"(?m)^    .*$", "", text)


def anchors_of(path):
    """GitHub's anchors of headings."""
    for heading in re.findall(r"(?m)^#+ (.*)$", without_code(path.read_text())):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def check_markdown():
    count = 0
    for page in markdown_pages():
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", without_code(page.read_text()))):
            count += 1
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            if not file.exists():
                yield f"{page.relative_to(ROOT)}: there is no {target}"
            elif anchor and anchor not in anchors_of(file):
                yield f"{page.relative_to(ROOT)}: {file.relative_to(ROOT)} has no heading #{anchor}"
    if count < 10:
        yield f"only {count} links were found"


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


def check_site(site):
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    if len(pages) < 20:
        yield f"the site has {len(pages)} pages"
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                yield f"{path.relative_to(site)}: there is no {link}"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{path.relative_to(site)}: {target.relative_to(site)} has no #{anchor}"


def check_references(site):
    """Every op, pass and function is there."""
    c = Page((site / "reference" / "c.html").read_text()).anchors
    for function in re.findall(r"PARTITA_API [^;(]*?\b(partita_\w+)\(", (ROOT / "runtime" / "capi" / "partita.h").read_text()):
        if f"c.{function}" not in c:
            yield f"reference/c.html lacks {function}"
    python = Page((site / "reference" / "python.html").read_text()).anchors
    for name in ("Model", "Model.run", "Model.submit", "Model.close", "Ticket.wait", "Port", "Error"):
        if not any(anchor.startswith("partita") and anchor.endswith(f".{name}") for anchor in python):
            yield f"reference/python.html lacks {name}"
    for dialect in ("nn", "dist", "plan"):
        text = re.sub(r"<[^>]*>", "", (site / "reference" / f"{dialect}.html").read_text())
        for table in (ROOT / "dialects" / dialect).glob("*.td"):
            for op in re.findall(r'^def \w+Op\s*:\s*\w+<"([\w.]+)"', table.read_text(), re.M):
                if f"{dialect}.{op}" not in text:
                    yield f"reference/{dialect}.html lacks {op}"
    passes = "".join(path.read_text() for path in (site / "reference").glob("passes-*.html"))
    for table in (ROOT / "compiler").rglob("Passes.td"):
        for flag in re.findall(r'^def \w+Pass\b[^"{]*<"([\w-]+)"', table.read_text(), re.M):
            if f"-{flag}<" not in passes:
                yield f"no page has the pass --{flag}"
    ops = (site / "reference" / "onnx-ops.html").read_text()
    for op in ("Conv", "LSTM", "Adagrad"):
        if f">{op}<" not in ops:
            yield f"reference/onnx-ops.html lacks {op}"


def main():
    if sys.argv[1:2] != ["--site"]:
        wrong = list(check_markdown())
    else:
        build = pathlib.Path(sys.argv[2]).resolve()
        made = subprocess.run([sys.executable, ROOT / "docs" / "site" / "make.py", build])
        if made.returncode != 0:
            return made.returncode
        site = build / "docs" / "site"
        wrong = [*check_site(site), *check_references(site)]
    print("\n".join(wrong) or "every link leads somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
