"""Which file of CA certificates the user's other programs trust, where the variable that counts here is not set."""

from __future__ import annotations

import os
from collections.abc import Mapping

OTHERS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
"""Variables of Requests, curl and pip that name a file of CA certificates. uv and Python read SSL_CERT_FILE alone."""


def certificate_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `{"SSL_CERT_FILE": …}` taken from one of the others, `{}` where it is set already or none names a file."""
    if environ.get("SSL_CERT_FILE") or environ.get("SSL_CERT_DIR"):
        return {}
    named = (environ.get(name, "") for name in OTHERS)
    return next(({"SSL_CERT_FILE": file} for file in named if os.path.isfile(file)), {})  # noqa: PTH113 - as given
