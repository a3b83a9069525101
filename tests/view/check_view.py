"""Tests `vram view`: the page it writes, the page's contents, and the server. Usage: check_view.py VRAM"""
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
    # Only those elements were added, and no name ended one.
    stripped = re.sub(r'<script type="application/x-vram" data-name="[^"]*">[^<]*</script>\n', "", page)
    assert stripped == bare.replace("<!--recordings-->", ""), "the page holds more than recordings"
    assert "connect-src 'none'" in page and "alert(1)</script>" not in page


def report(vram, *arguments):
    return subprocess.run([vram, "report", "--json", *arguments], capture_output=True, text=True, timeout=60)


def contents(text):
    """Returns a report without its source. The comparison with paged memory is left out: it is made only for a single recording."""
    made = json.loads(text)
    return [{k: v for k, v in one.items() if k not in ("file", "bytes", "paged")} for one in (made if isinstance(made, list) else [made])]


def check_read_back(vram, folder):
    """A page is read as the recordings in it, in any format."""
    os.mkdir(os.path.join(folder, "same"))
    names = ["a.pickle", "b.json", "c.vram", "d.html", "same/a.pickle"]
    paths = [os.path.join(folder, name) for name in names]
    for path, name in zip(paths, "first second third fourth fifth".split()):
        data = pickle.dumps(recording(name))
        if path.endswith(".json"):
            data = json.dumps(recording(name)).encode()
        elif path.endswith(".html"):
            data = b'<!DOCTYPE html><script>x = [{"name": "s.pickle", "base64": "' + base64.b64encode(data) + b'"}]</script>'
        with open(path, "wb") as file:
            file.write(data)
        if path.endswith(".vram"):
            os.rename(path, path + ".pickle")
            assert subprocess.run([vram, "convert", path + ".pickle", "-o", path]).returncode == 0
    wanted = [contents(report(vram, path).stdout)[0] for path in paths]
    assert len({json.dumps(one) for one in wanted}) == len(paths)
    page = os.path.join(folder, "p#1.html")
    for path, want in zip(paths, wanted):
        assert run(vram, path, "-o", page, "--no-open").returncode == 0
        for way in (page, page + "#1", page + "#" + os.path.basename(path)):
            assert contents(report(vram, way).stdout) == [want], way
        with open(page, "rb") as file:
            piped = subprocess.run([vram, "report", "--json", "-"], stdin=file, capture_output=True, text=True, timeout=60)
        assert contents(piped.stdout) == [want], piped
    assert run(vram, *paths, "-o", page, "--no-open").returncode == 0
    assert contents(report(vram, page).stdout) == wanted
    assert [one["file"] for one in json.loads(report(vram, page).stdout)] == ["p#1.html#" + n for n in ("1", "b.json", "c.vram", "d.html", "5")]
    assert contents(report(vram, page + "#c.vram").stdout) == [wanted[2]]
    with open(page, "rb") as file:
        piped = subprocess.run([vram, "report", "-"], stdin=file, capture_output=True, text=True, timeout=60)
        assert piped.returncode == 3 and "standard input: the page contains several" in piped.stderr, piped
        packed = gzip.compress(open(page, "rb").read())
    with open(page + ".gz", "wb") as file:
        file.write(packed)
    assert contents(report(vram, page + ".gz").stdout) == wanted
    again = os.path.join(folder, "again.html")  # a page of a page
    assert run(vram, page, "-o", again, "--no-open").returncode == 0 and contents(report(vram, again).stdout) == wanted
    for arguments, code, words in [  # one line; a usage error of convert has a second one that lists the formats
        (["report", page + "#6"], 3, "the page has no such recording"),
        (["report", page + "#none"], 3, "the page has no such recording"),
        (["report", paths[0] + "#1"], 3, "#NAME works only with a page"),
        (["convert", page, "-o", again], 2, "infer a format"),
        (["convert", page, "-o", os.path.join(folder, "x.json")], 3, "several recordings"),
        (["view", page + "#2", "-o", page, "--no-open"], 2, "replace the input"),
    ]:
        result = subprocess.run([vram, *arguments], capture_output=True, text=True, timeout=60)
        assert result.returncode == code and words in result.stderr.splitlines()[0], result
        assert len(result.stderr.splitlines()) == (2 if words == "infer a format" else 1), result


def check_damage(vram, folder):
    """A page that is truncated or damaged within a recording gives one error line, and the recordings before it are read."""
    page, bad = os.path.join(folder, "p#1.html"), os.path.join(folder, "bad.html")
    with open(page, "rb") as file:
        whole = file.read()
    marks = [m.end() for m in re.finditer(rb'data-name="[^"]*">', whole)]
    first, second = marks[0], marks[1]
    cases = [(whole[:first - 3], [3]), (whole[:first - 30], [3]), (whole[:first], [3]), (whole[:first + 40], [3]), (whole[:second + 40], [3]),
             (whole[:first + 8] + b"*" + whole[first + 9:], [3]), (whole[:first + 60] + b"A" * 40 + whole[first + 100:], [3]),
             (whole[:first] + b"\0" * 100 + whole[first:], [3]), (whole[:first] + whole[first + 4:], [3]), (whole[:-100], [0]),
             (whole[:first] + b"</script>" + whole[first:], [3]), (whole.replace(b'data-name="', b'data-name="' + b"&#x" * 500), [0])]
    for number, (data, codes) in enumerate(cases):
        with open(bad, "wb") as file:
            file.write(data)
        result = report(vram, bad)
        assert result.returncode in codes, (number, result)
        assert all(line.startswith("vram: ") for line in result.stderr.splitlines()) and len(result.stderr.splitlines()) <= 5, (number, result)
        assert (result.returncode == 3) == (result.stderr != ""), (number, result)


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
        assert status == 400 and b"unknown query 'nothing'" in text, text
        assert served.get("/")[0] == 404
        assert served.get(served.path[:-2] + "x/ask?list")[0] == 404
        assert served.get(served.path, method="POST")[0] == 405
        assert served.get(served.path, headers={"Host": f"rebound.example:{served.port}"})[0] == 403
        assert served.get(served.path + "ask?list", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
        assert served.get(served.path + "ask?" + "x" * 20000)[0] == 431
        idle = [http.client.HTTPConnection("127.0.0.1", served.port, timeout=20) for _ in range(60)]
        for connection in idle:  # more than the server keeps
            connection.connect()
        assert served.get(served.path + "ask?list")[0] == 200
    finally:
        assert served.end() == 0


def main(vram):
    with tempfile.TemporaryDirectory() as folder:
        check_page(vram, folder)
        with tempfile.TemporaryDirectory() as other:
            check_read_back(vram, other)
            check_damage(vram, other)
        check_mistakes(vram, folder)
        check_server(vram, folder)


main(sys.argv[1])
