#!/bin/sh
# Install packages in the environment of PYTHON: install.sh PYTHON ARGUMENT..., with arguments of `pip install`.
# uv needs a tenth of pip's time. Without uv, or if it fails, the script uses pip, and adds it to the environment if it is missing.
set -eu

here=$(dirname "$0")
python=$(command -v "$1")
shift

uv=$here/../.tox/bootstrap/bin/uv
[ -x "$uv" ] || uv=$(command -v uv || true)
if [ -n "$uv" ]; then
    # uv reads no setting of pip's.
    [ -z "${PIP_CONSTRAINT-}" ] || export UV_CONSTRAINT="$PIP_CONSTRAINT"
    [ -z "${PIP_INDEX_URL-}" ] || export UV_DEFAULT_INDEX="$PIP_INDEX_URL"
    [ -z "${PIP_EXTRA_INDEX_URL-}" ] || export UV_INDEX="$PIP_EXTRA_INDEX_URL"
    [ -z "${PIP_CERT-}" ] || export SSL_CERT_FILE="$PIP_CERT"
    UV_HTTP_TIMEOUT=${PIP_DEFAULT_TIMEOUT:-60} "$uv" pip install --quiet --python "$python" "$@" && exit 0
    echo "uv could not install $* (its reason is above); trying pip" >&2
fi

"$python" -I -m pip --version >/dev/null 2>&1 || "$python" -I -m ensurepip >/dev/null
exec sh "$here/retry.sh" "$python" -I -m pip install --quiet "$@"
