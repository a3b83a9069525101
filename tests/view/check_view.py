"""`vram view`: the page it writes, what stands in it, and the server. Usage: check_view.py VRAM"""
import base64
import gzip
import http.client
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&.pickle"


def recording(name="forward"):
    frames = [{"name": name, "filename": "/home/me/model.py", "line": 7}]
    event = {"action": "alloc", "addr": 0x7F0000000000, "size": 4096, "stream": 0, "time_us": 1, "frames": frames}
    return {"segments": [], "device_traces": [[event]], "external_annotations": []}


def run(vram, *arguments):
    return subprocess.run([vram, "view", *arguments], capture_output=True, text=True, timeout=60)


def elements(page):
    return re.findall(r'<script type="application/x-vram" data-name="([^"]*)">([^<]*)</script>', page)


def check_page(vram, folder):
    paths = []
    for i, name in enumerate(["rank10.pickle", "rank2.pickle", HOSTILE.replace("/", "_")]):
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "wb") as file:
            pickle.dump(recording("</script><b>" if i == 0 else "forward"), file)
    page_path = folder + ".html"
    empty = run(vram, "-o", page_path, "--no-open")
    assert empty.returncode == 0, empty
    bare = open(page_path).read()
    result = run(vram, folder, "-o", page_path, "--no-open")
    assert result.returncode == 0, result
    page = open(page_path).read()
    os.remove(page_path)
    found = elements(page)
    assert len(found) == 3, [name for name, _ in found]
    names = [name for name, _ in found]
    assert names.index("rank2.pickle") < names.index("rank10.pickle"), names
    for name, text in found:
        assert gzip.decompress(base64.b64decode(text, validate=True)), name
    # Nothing but those elements was added, and no name ended one.
    stripped = re.sub(r'<script type="application/x-vram" data-name="[^"]*">[^<]*</script>\n', "", page)
    assert stripped == bare.replace("<!--recordings-->", ""), "the page holds more than recordings"
    assert "connect-src 'none'" in page and "alert(1)</script>" not in page


def check_mistakes(vram, folder):
    path = os.path.join(folder, "rank2.pickle")
    for arguments, code, words in [
        (["--serve", "-o", "x.html", path], 2, "no file"),
        (["--serve"], 2, "needs a recording"),
        (["--port", "80", path], 2, "--serve"),
        (["--serve", "--port", "70000", path], 2, "65535"),
        ([os.devnull, "-o", os.path.join(folder, "none.html")], 3, "null"),
        ([path, "-o", path], 2, "replace the input"),
    ]:
        result = run(vram, "--no-open", *arguments)
        assert result.returncode == code and words in result.stderr, (arguments, result)
        assert result.stderr.startswith("vram: "), result
    assert not os.path.exists(os.path.join(folder, "none.html"))
    environment = dict(os.environ, TMPDIR=folder)
    result = subprocess.run([vram, "view", path, "--no-open"], capture_output=True, text=True, env=environment, timeout=60)
    assert result.returncode == 0 and elements(open(result.stdout.strip()).read()), result


class Served:
    def __init__(self, vram, *paths):
        self.process = subprocess.Popen([vram, "view", "--serve", "--no-open", *paths], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = int(re.match(r"http://127\.0\.0\.1:(\d+)/", self.url).group(1))
        self.path = self.url[self.url.index("/", 8):]

    def get(self, path, method="GET", headers=None, connection=None):
        connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read(), response

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20)


def check_server(vram, folder):
    served = Served(vram, os.path.join(folder, "rank2.pickle"), os.path.join(folder, "rank10.pickle"))
    try:
        status, page, response = served.get(served.path)
        assert status == 200 and b"connect-src 'self'" in page and b"connect-src 'none'" not in page
        assert f'content="{served.path}"'.encode() in page
        assert response.headers["X-Content-Type-Options"] == "nosniff" and response.headers["X-Frame-Options"] == "DENY"
        kept = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
        for _ in range(5):  # over one connection
            status, answer, _ = served.get(served.path + "ask?list", connection=kept)
            length = int.from_bytes(answer[:4], "little")
            names = [item["name"] for item in json.loads(answer[8:8 + length])["recordings"]]
            assert status == 200 and names == ["rank2.pickle", "rank10.pickle"], names
        status, text, _ = served.get(served.path + "ask?nothing")
        assert status == 400 and b"no question 'nothing'" in text, text
        assert served.get("/")[0] == 404
        assert served.get(served.path[:-2] + "x/ask?list")[0] == 404
        assert served.get(served.path, method="POST")[0] == 405
        assert served.get(served.path, headers={"Host": f"rebound.example:{served.port}"})[0] == 403
        assert served.get(served.path + "ask?list", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
        assert served.get(served.path + "ask?" + "x" * 20000)[0] == 431
        idle = [http.client.HTTPConnection("127.0.0.1", served.port, timeout=20) for _ in range(60)]
        for connection in idle:  # more than are kept
            connection.connect()
        assert served.get(served.path + "ask?list")[0] == 200
    finally:
        assert served.end() == 0


def main(vram):
    with tempfile.TemporaryDirectory() as folder:
        check_page(vram, folder)
        check_mistakes(vram, folder)
        check_server(vram, folder)


main(sys.argv[1])
