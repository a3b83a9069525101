#!/usr/bin/env bash
# jupyter.sh FOLDER PACKAGES [SHOTS]: uses the wheel for Linux from PACKAGES in a notebook in JupyterLab, in a fresh environment. If it is missing, JupyterLab
# is installed from PyPI into FOLDER (400 MB). SHOTS: a folder for screenshots. If it cannot be installed, prints what is missing and does nothing.
set -euo pipefail
VERSION=4.6

skip() { echo "skipped: $*"; exit 0; }
here=$(cd "$(dirname "$0")" && pwd)
wheel=$(realpath "$2"/vram-*manylinux*"$(uname -m)".whl) shots=${3:+$(realpath "$3")}
mkdir -p "$1"
lab=$(realpath "$1")/$VERSION
pip() { "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"; }
if [ ! -e "$lab/complete" ]; then
    begun=$SECONDS
    rm -rf "$lab"
    python3 -m venv "$lab" || skip "no environment can be made (python3-venv)"
    pip "$lab" "jupyterlab==$VERSION.*" || skip "JupyterLab $VERSION cannot be had from PyPI"
    # Turn off the question about fetching news.
    mkdir -p "$lab/share/jupyter/lab/settings"
    echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' >"$lab/share/jupyter/lab/settings/overrides.json"
    touch "$lab/complete"
    echo "JupyterLab installed: $((SECONDS - begun)) s"
fi

# A fresh environment with the same packages and the wheel.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv --without-pip "$work/env"
site=$("$work/env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$lab/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/lab.pth"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$wheel"
export JUPYTER_PATH=$lab/share/jupyter JUPYTERLAB_DIR=$lab/share/jupyter/lab JUPYTER_CONFIG_DIR=$work/config JUPYTER_DATA_DIR=$work/data
export JUPYTER_RUNTIME_DIR=$work/runtime IPYTHONDIR=$work/ipython PYTHONDONTWRITEBYTECODE=1
node "$here/jupyter.test.mjs" "$work/env/bin/python" "$work/notebooks" ${shots:+"$shots"}
