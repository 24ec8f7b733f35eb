"""Object stores with addresses of their own: moto in this process, and servers that are fetched and started.

==========  ==========================================  =====================================================
store       from                                        what it stands for
==========  ==========================================  =====================================================
moto        a Python wheel                              S3
versitygw   the Go module proxy                         S3 over a folder (versitygw)
minio       the Go module proxy                         S3 (MinIO)
azure       npm                                         Azure Blob Storage (Azurite)
gcs         the Go module proxy                         Google Cloud Storage (fake-gcs-server)
==========  ==========================================  =====================================================

To test a store that runs already: ``STORE_ADDRESS=s3://bucket/folder STORE_OPTIONS='{"key": …}'``.
"""

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from s3_server import s3_options
from servers import free_port, wait_for

INSTALLED = Path(__file__).parents[2] / "build" / "places"
MODULES = {
    "versitygw": ("github.com/versity/versitygw/cmd/versitygw", "v1.8.0"),
    "minio": ("github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c"),
    "fake-gcs-server": ("github.com/fsouza/fake-gcs-server", "v1.56.1"),
}
AZURITE = "3.37.0"
AZURE_ACCOUNT = "devstoreaccount1"
# the key of the emulator, from its documentation
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SECRET = "testtest"  # MinIO wants eight letters


@dataclass(frozen=True)
class Store:
    """A store that answers.

    Attributes:
        name: its name in the table above.
        address: the address of an empty folder.
        port: the port of its server on this machine; 0 if the tests do not know it.
        make_options: makes the options of fsspec's file system from the port at which the client reaches the server.
    """

    name: str
    address: str
    port: int
    make_options: Any

    @property
    def options(self):
        """The options of fsspec's file system."""
        return self.make_options(self.port)

    def through(self, port):
        """The same store, reached through another port."""
        return Store(self.name, self.address, port, self.make_options)


def go_install(module, version, is_plain=True):
    """The path of a program that Go builds from the module proxy; it is built once.

    Args:
        module: the package of the program.
        version: of its module.
        is_plain: whether ``go install`` takes it. It takes no module whose ``go.mod`` replaces others: such a one is
            built as a dependency of a module of our own.
    """
    name = module.rsplit("/", 1)[-1]
    binary = INSTALLED / f"{name}-{version}" / name
    if not binary.exists():
        if shutil.which("go") is None:
            raise RuntimeError(f"{name} is built from {module}@{version}: install Go")
        binary.parent.mkdir(parents=True, exist_ok=True)
        if is_plain:
            path = {**os.environ, "GOBIN": str(binary.parent)}
            subprocess.run(["go", "install", "-ldflags", "-s -w", f"{module}@{version}"], env=path, check=True)
        else:
            with tempfile.TemporaryDirectory() as folder:
                for words in (
                    ["mod", "init", "places"],
                    ["get", f"{module}@{version}"],
                    ["build", "-ldflags", "-s -w", "-o", str(binary), module],
                ):
                    subprocess.run(["go", *words], cwd=folder, check=True)
    return str(binary)


def _go_install(name):
    return go_install(*MODULES[name])


def _npm_install(name, version):
    folder = INSTALLED / f"{name}-{version}"
    if not (folder / "node_modules" / name).is_dir():
        if shutil.which("npm") is None:
            raise RuntimeError(f"{name} {version} comes from npm: install Node")
        quiet = ["--silent", "--no-fund", "--no-audit"]
        subprocess.run(["npm", "install", *quiet, "--prefix", str(folder), f"{name}@{version}"], check=True)
    return str(folder / "node_modules" / name)


def _s3(port):
    return {
        "key": SECRET,
        "secret": SECRET,
        "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "eu-west-1"},
    }


def _azure(port):
    parts = {
        "DefaultEndpointsProtocol": "http",
        "AccountName": AZURE_ACCOUNT,
        "AccountKey": AZURE_KEY,
        "BlobEndpoint": f"http://127.0.0.1:{port}/{AZURE_ACCOUNT}",
    }
    return {"connection_string": ";".join(f"{key}={value}" for key, value in parts.items())}


def _gcs(port):
    return {"endpoint_url": f"http://127.0.0.1:{port}", "token": "anon", "project": "p"}


@contextmanager
def _started(command, port, folder, **environment):
    log = folder / "server.log"
    with open(log, "wb") as told:
        process = subprocess.Popen(command, cwd=folder, stdout=told, stderr=told, env={**os.environ, **environment})
    try:
        wait_for(port, process, log)
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def _moto(_folder):
    with s3_options() as options:
        port = int(options["client_kwargs"]["endpoint_url"].rpartition(":")[2])
        yield Store("moto", "s3a://lake", port, _s3)


@contextmanager
def _versitygw(folder):
    port = free_port()
    for name in ("data", "sidecar"):
        (folder / name).mkdir()
    command = [
        _go_install("versitygw"), "--access", SECRET, "--secret", SECRET, "--region", "eu-west-1",
        "--port", f"127.0.0.1:{port}", "--quiet", "posix", "--sidecar", str(folder / "sidecar"), str(folder / "data"),
    ]  # fmt: skip
    with _started(command, port, folder):
        fsspec.filesystem("s3", **_s3(port)).mkdir("lake")
        yield Store("versitygw", "s3a://lake", port, _s3)


@contextmanager
def _minio(folder):
    port = free_port()
    command = [_go_install("minio"), "server", "--quiet", "--address", f"127.0.0.1:{port}", str(folder / "data")]
    users = {"MINIO_ROOT_USER": SECRET, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_REGION": "eu-west-1"}
    with _started(command, port, folder, **users):
        fsspec.filesystem("s3", **_s3(port)).mkdir("lake")
        yield Store("minio", "s3a://lake", port, _s3)


@contextmanager
def _azurite(folder):
    port = free_port()
    main = f"{_npm_install('azurite', AZURITE)}/dist/src/blob/main.js"
    command = [
        "node", main, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder / "data"),
        "--silent", "--skipApiVersionCheck", "--disableTelemetry",
    ]  # fmt: skip
    with _started(command, port, folder):
        fsspec.filesystem("abfs", **_azure(port)).mkdir("lake")
        yield Store("azure", "abfss://lake", port, _azure)


@contextmanager
def _fake_gcs(folder):
    port = free_port()
    command = [
        _go_install("fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port),
        "-backend", "memory", "-filesystem-root", str(folder / "data"), "-public-host", f"127.0.0.1:{port}",
        "-external-url", f"http://127.0.0.1:{port}", "-log-level", "warn",
    ]  # fmt: skip
    # gcsfs reads times in UTC only
    with _started(command, port, folder, TZ="UTC"):
        fsspec.filesystem("gs", **_gcs(port)).mkdir("lake")
        yield Store("gcs", "gs://lake", port, _gcs)


STORES = {"moto": _moto, "versitygw": _versitygw, "minio": _minio, "azure": _azurite, "gcs": _fake_gcs}


def chosen():
    """Names of the stores to test: all, or those of the variable STORE; `given` if STORE_ADDRESS names one."""
    if "STORE_ADDRESS" in os.environ:
        return ["given"]
    return [name.strip() for name in os.environ.get("STORE", ",".join(STORES)).split(",")]


@contextmanager
def serve_store(name, folder):
    """Yields a store that answers.

    Args:
        name: a name from the table in the module's docstring, or `given`.
        folder: the folder for its data and its log.
    """
    if name == "given":
        options = json.loads(os.environ.get("STORE_OPTIONS", "{}"))
        yield Store(name, os.environ["STORE_ADDRESS"].rstrip("/"), 0, lambda _: options)
        return
    if name not in STORES:
        raise ValueError(f"STORE={name} is none of {', '.join(STORES)}")
    # gcsfs asks a real bucket for its kind; if nothing answers, that takes a minute per path
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    with STORES[name](folder) as store:
        yield store
