"""Serve site/ as a static host would: gzip, cache headers, below a path."""

import contextlib
import gzip
import threading
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = ROOT / "site"
PREFIX = "/any/sub/path/"
COMPRESSED = (".html", ".css", ".js", ".json", ".svg", ".xml", ".mjs", ".py")


@cache
def content(path: Path) -> bytes:
    """What is sent of a file, which stays as it is while the site is served."""
    body = path.read_bytes()
    return gzip.compress(body, mtime=0) if path.suffix in COMPRESSED else body


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # A connection serves more than one request.
    prefix: str

    def do_GET(self) -> None:
        path = Path(self.translate_path("/" + self.path.removeprefix(self.prefix)))
        path = path / "index.html" if path.is_dir() else path
        if not self.path.startswith(self.prefix) or not path.is_file():
            self.send_error(404)
            return
        body = content(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Cache-Control", "max-age=600")
        if path.suffix in COMPRESSED:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextlib.contextmanager
def serve(prefix: str = PREFIX) -> Iterator[str]:
    """Yield the address of the site, below a path on a free local port."""
    if not (SITE / "index.html").exists():
        raise FileNotFoundError(f"{SITE} holds no site: run `make site` first")
    handler = type("At", (Handler,), {"prefix": prefix})
    in_site = partial(handler, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), in_site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{prefix}"
        server.shutdown()


def pages() -> list[str]:
    """The address of every page, relative to the site: "", "softmax/online/", ..."""
    found = (p.parent.relative_to(SITE) for p in SITE.rglob("index.html"))
    return sorted("" if str(p) == "." else f"{p}/" for p in found)


def read(path: str) -> str:
    """The HTML of a page."""
    file = SITE / path
    return (file / "index.html" if file.is_dir() else file).read_text(encoding="utf-8")
