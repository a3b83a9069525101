#!/usr/bin/env python3
"""Writes the list of a release's parts (SPDX 2.3, JSON): the libraries it links with, the packages that built its page, and a checksum of
every file.

Usage: sbom.py SOURCE FOLDER >FOLDER/vram-VERSION.spdx.json
"""
import hashlib
import json
import re
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

# The libraries that the command links with or loads: Debian's name of the source, an installed package of it, and its license (liblzma is
# in the public domain, which has no identifier).
LINKED = [("libzstd", "libzstd-dev", "BSD-3-Clause OR GPL-2.0-only"), ("zlib", "zlib1g-dev", "Zlib"), ("xz-utils", "liblzma-dev", "NOASSERTION"),
          ("sqlite3", "libsqlite3-dev", "blessing"), ("cjson", "libcjson-dev", "MIT"), ("elfutils", "libdw1", "LGPL-3.0-or-later OR GPL-2.0-or-later")]


def package(name, version, license_text, checksum=None):
    row = {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{name}-{version}"), "name": name, "versionInfo": version,
           "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": license_text, "licenseDeclared": license_text,
           "copyrightText": "NOASSERTION"}
    if checksum:
        row["checksums"] = [{"algorithm": "SHA256", "checksumValue": checksum}]
    return row


def debian_version(name):
    """Returns the version of the source from which an installed package was built."""
    told = subprocess.run(["dpkg-query", "-W", "-f", "${source:Version}", name], capture_output=True, text=True, check=True)
    return told.stdout.strip()


def main():
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    version = re.search(r"project\(vram VERSION ([\d.]+)", (source / "CMakeLists.txt").read_text()).group(1)
    made = int(subprocess.run(["git", "-C", str(source), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True).stdout)
    rows = [package("vram", version, "Apache-2.0")]
    relations = []
    for path in sorted(folder.iterdir()):
        if path.name.endswith((".spdx.json", "SHA256SUMS")):
            continue
        rows.append(package(path.name, version, "Apache-2.0", hashlib.sha256(path.read_bytes()).hexdigest()))
        relations.append((rows[-1]["SPDXID"], "GENERATED_FROM"))
    for name, installed, license_text in LINKED:
        rows.append(package(name, debian_version(installed), license_text))
        relations.append((rows[-1]["SPDXID"], "DYNAMIC_LINK_OF"))
    lock = json.loads((source / "viewer/web/package-lock.json").read_text())
    for place, entry in sorted(lock["packages"].items()):
        if place.startswith("node_modules/") and not entry.get("optional"):
            rows.append(package(place.removeprefix("node_modules/"), entry["version"], entry.get("license", "NOASSERTION")))
            relations.append((rows[-1]["SPDXID"], "BUILD_TOOL_OF"))
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"vram-{version}",
               "documentNamespace": f"https://spdx.org/spdxdocs/vram-{version}-{made}",
               "creationInfo": {"created": datetime.fromtimestamp(made, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: packaging/sbom.py"]},
               "packages": rows,
               "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": rows[0]["SPDXID"]}]
               + [{"spdxElementId": part, "relationshipType": kind, "relatedSpdxElement": rows[0]["SPDXID"]} for part, kind in relations]},
              sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
