"""Certificates of tests, made by openssl: self-signed, for a name, of a kind of key."""

import subprocess


def make_certificate(folder, name, kind="rsa:2048", common_name="station.example"):
    """The paths of certificate and key."""
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    kinds = {"ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]}.get(kind, ["-newkey", kind])
    subprocess.run(
        ["openssl", "req", "-x509", *kinds, "-nodes", "-days", "2", "-subj", f"/CN={common_name}",
         "-addext", f"subjectAltName=DNS:{common_name}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key
