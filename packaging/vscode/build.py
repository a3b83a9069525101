#!/usr/bin/env python3
"""Makes the extension for Visual Studio Code: FOLDER/vram-VERSION.vsix. usage: build.py VIEWER_HTML FOLDER
A .vsix is a ZIP of the extension with two lists around it. Files have the date 1980-01-01: the same input gives the same bytes."""
import json
import pathlib
import sys
import zipfile
from xml.sax.saxutils import quoteattr

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TYPES = {".json": "application/json", ".js": "application/javascript", ".html": "text/html", ".md": "text/markdown", ".txt": "text/plain", ".vsixmanifest": "text/xml"}


def manifest(facts):
    """extension.vsixmanifest."""
    assets = {"Microsoft.VisualStudio.Code.Manifest": "package.json", "Microsoft.VisualStudio.Services.Content.Details": "README.md",
              "Microsoft.VisualStudio.Services.Content.License": "LICENSE.txt"}
    lines = "".join(f"<Asset Type={quoteattr(kind)} Path={quoteattr('extension/' + name)} Addressable=\"true\"/>" for kind, name in assets.items())
    engine = quoteattr(facts["engines"]["vscode"])
    return (f'<?xml version="1.0" encoding="utf-8"?>\n<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">'
            f'<Metadata><Identity Language="en-US" Id={quoteattr(facts["name"])} Version={quoteattr(facts["version"])} Publisher={quoteattr(facts["publisher"])}/>'
            f'<DisplayName>{facts["displayName"]}</DisplayName><Description xml:space="preserve">{facts["description"]}</Description>'
            f'<Categories>{",".join(facts["categories"])}</Categories><License>extension/LICENSE.txt</License>'
            f'<Properties><Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/></Properties></Metadata>'
            f'<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation><Dependencies/><Assets>{lines}</Assets></PackageManifest>\n')


def types():
    rows = "".join(f'<Default Extension="{ending}" ContentType="{kind}"/>' for ending, kind in TYPES.items())
    return f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{rows}</Types>\n'


def main():
    page, folder = map(pathlib.Path, sys.argv[1:])
    facts = json.loads((HERE / "package.json").read_text())
    facts["version"] = (ROOT / "CMakeLists.txt").read_text().split("project(vram VERSION ")[1].split()[0]
    files = {"[Content_Types].xml": types(), "extension.vsixmanifest": manifest(facts), "extension/package.json": json.dumps(facts, indent=4),
             "extension/extension.js": (HERE / "extension.js").read_text(), "extension/README.md": (HERE / "README.md").read_text(),
             "extension/LICENSE.txt": (ROOT / "LICENSE").read_text(), "extension/viewer.html": page.read_text()}
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"vram-{facts['version']}.vsix"
    with zipfile.ZipFile(place, "w") as package:
        for name, text in files.items():
            package.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED, 9)
    print(f"{place}: {place.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
