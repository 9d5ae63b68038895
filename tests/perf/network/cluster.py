"""A scheduler of dask.distributed and its workers as real processes, on the hosts of a network in namespaces."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from perf.network.contract import Host
from perf.network.spokes import Bridged
from perf.network.workers import connected
from perf.processes.installation import ROOT


@contextmanager
def cluster_on(
    network: Bridged, *, clients: int = 1, certificate: Path | None = None
) -> Iterator[tuple[str, Sequence[subprocess.Popen[bytes]]]]:
    """The scheduler's address and the workers, all of them there: of the clients first, all on the client's host, then one on each server's.

    certificate: with its key, of all of them, so that they speak TLS.
    """
    placement = network.placement
    scheme, security = "tcp", list[str]()
    if certificate is not None:
        scheme = "tls"
        security = ["--tls-ca-file", str(certificate), "--tls-cert", str(certificate), "--tls-key", str(certificate)]
    address = f"{scheme}://{placement.client.address}:8786"
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "8786", "--no-dashboard", "--no-show"]
    commands = [placement.client.command([*run, "--host", f"{scheme}://{placement.client.address}", *security])]
    places: list[tuple[Host, str]] = [(placement.client, "client")] * clients
    for host, role in [*places, *((server, "server") for server in placement.servers)]:
        run = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--host", f"{scheme}://{host.address}"]
        options = ["--no-nanny", "--nthreads", "4", "--no-dashboard", "--resources", f"{role}=1"]
        commands.append(host.command([*run, *options, *security]))
    ours = dict.fromkeys(("ca-file", "client.cert", "client.key"), str(certificate) if certificate else None)
    with ExitStack() as stack:
        stack.enter_context(dask.config.set({f"distributed.comm.tls.{name}": path for name, path in ours.items()}))
        processes = []
        for command in commands:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        with connected(address) as cluster:
            cluster.wait_for(len(processes) - 1)
        yield address, processes[1:]


def make_certificate(path: Path) -> Path:
    """A certificate that vouches for itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a campaign's machines")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path
