"""Dask and Ray on clusters of separate processes: a worker that is killed changes nothing."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from soda_tta.adaptors import Bank
from soda_tta.bench import Cell, Store, make_table, run_grid
from soda_tta.errors import RunError, SodaError
from soda_tta.scale.archive import apply_archive
from soda_tta.scale.backend import Backend
from soda_tta.scale.backends import find_backend

pytestmark = pytest.mark.peers
ROOT = Path(__file__).parents[2]
COUNT = 60
SLOW = """
import os, pathlib, time
import numpy as np
weights = np.random.default_rng(7).normal(size=(3, 4))
traces = pathlib.Path(__file__).parent / "traces"

def predict(images):
    (traces / str(os.getpid())).touch()  # who has begun to work
    time.sleep(0.02 * len(images))
    e = np.exp(8 * (images.mean(axis=(2, 3)) - 0.5) @ weights)
    return e / e.sum(axis=1, keepdims=True)
"""
METHOD = """
import os, pathlib, time
from soda_tta import Method
traces = pathlib.Path(__file__).parent / "traces"

class Waiting(Method):
    def answer(self, work):
        (traces / str(os.getpid())).touch()
        time.sleep(0.5)
        return work.meter.asking("select")(work.images[:])

waiting = Waiting(name="waiting", summary="Waits.")
"""


@pytest.fixture(scope="module", autouse=True)
def ray_token() -> Iterator[None]:
    """A token of this run alone, for the clusters that it starts and for their clients.

    Ray would otherwise make one and keep it below the home directory. It reads the environment when
    it is imported, which is therefore left to the tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        yield


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch) -> Path:
    """A folder with images, a slow model and a slow method, which every worker can import."""
    random = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    (tmp_path / "traces").mkdir()
    for number in range(COUNT):
        pixels = random.integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number:02}.png")
    (tmp_path / "slow_model.py").write_text(SLOW)
    (tmp_path / "slow_method.py").write_text(METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{tmp_path}")
    return tmp_path


@contextmanager
def running(*command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of its own, ended with the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def dask_scheduler(workshop: Path, free_port: int) -> Iterator[subprocess.Popen[bytes]]:
    pytest.importorskip("distributed")
    words = ["distributed.cli.dask_scheduler", "--port", str(free_port), "--no-dashboard"]
    with running(*words, "--host", "127.0.0.1", log=workshop / "scheduler.log") as scheduler:
        yield scheduler


@pytest.fixture
def dask_address(dask_scheduler, free_port: int) -> str:
    return f"tcp://127.0.0.1:{free_port}"


@contextmanager
def dask_worker(address: str, workshop: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    words = ["distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", *more]
    log = workshop / f"worker-{time.monotonic_ns()}.log"
    with running(*words, "--no-dashboard", log=log) as worker:
        yield worker


@pytest.fixture
def dask(dask_address: str, workshop: Path) -> Iterator[Backend]:
    """Two Dask workers."""
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(dask_worker(dask_address, workshop))
        backend = stack.enter_context(find_backend("dask", dask_address))
        backend.client.wait_for_workers(2, timeout=60)
        yield backend


@pytest.fixture
def ray(workshop: Path, free_port: int) -> Iterator[Backend]:
    """A Ray head with two workers; it listens to one port for each test."""
    pytest.importorskip("ray")
    folder = Path("/tmp") / f"ray-{os.getpid()}-{free_port}"  # sockets need a short path
    words = ["ray.scripts.scripts", "start", "--head", "--block", "--port", str(free_port)]
    words += ["--num-cpus", "2", "--include-dashboard", "false", "--disable-usage-stats"]
    words += ["--node-ip-address", "127.0.0.1", "--temp-dir", str(folder)]
    with running(*words, log=workshop / "ray.log") as head:
        children: list[psutil.Process] = []
        try:
            backend = connected(f"127.0.0.1:{free_port}")
            children = psutil.Process(head.pid).children(recursive=True)
            with backend:
                yield backend
        finally:
            for child in children:
                if child.is_running():
                    child.kill()


def connected(address: str) -> Backend:
    deadline = time.monotonic() + 60
    while True:
        try:
            return find_backend("ray", address)
        except SodaError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


class KillOne:
    """Kills a worker that is at work, once, after the first results."""

    def __init__(self, workshop: Path) -> None:
        self.traces = workshop / "traces"
        self.killed: int | None = None

    def __call__(self, *event: object) -> None:
        if self.killed is not None:
            return
        for trace in self.traces.iterdir():
            if int(trace.name) != os.getpid():
                self.killed = int(trace.name)
                os.kill(self.killed, signal.SIGKILL)
                return


def parts(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("part-*")}


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_an_archive_with_a_killed_worker(engine, workshop, request) -> None:
    backend = request.getfixturevalue(engine)
    how = {
        "adaptor": Bank().adaptor({"brightness": 0.3}),
        "images": workshop / "photos",
        "box": f"{workshop / 'slow_model.py'}:predict",
        "shard_size": 5,
    }
    alone = apply_archive(**how, out=workshop / "alone")
    for trace in (workshop / "traces").iterdir():
        trace.unlink()
    kill = KillOne(workshop)
    summary = apply_archive(**how, out=workshop / "out", backend=backend, progress=kill)
    assert kill.killed is not None
    assert len(list((workshop / "traces").iterdir())) >= 2  # another worker did the rest
    assert summary == alone
    assert parts(workshop / "out") == parts(workshop / "alone")
    left = {path.name for path in (workshop / "out").iterdir()} - parts(workshop / "out").keys()
    assert left == {"_manifest.json", "_shards.jsonl", "_summary.json"}


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_grid_with_a_killed_worker(engine, workshop, small_model, request) -> None:
    backend = request.getfixturevalue(engine)
    pixels = np.random.default_rng(0).integers(0, 256, (30, 16, 16, 3), np.uint8)
    np.savez(workshop / "mine.npz", images=pixels, labels=np.arange(30) % 10)
    facts = {"data": str(workshop / "mine.npz"), "model": str(small_model), "images": 30}
    cells = [
        Cell(method="slow_method:waiting", corruption="clean", seed=seed, **facts)
        for seed in range(6)
    ]
    alone, store = Store(workshop / "alone"), Store(workshop / "store")
    run_grid(cells, alone)
    for trace in (workshop / "traces").iterdir():
        trace.unlink()
    kill = KillOne(workshop)
    run_grid(cells, store, backend=backend, report=kill)
    assert kill.killed is not None
    lines = store.path.read_text().splitlines()
    assert len(lines) == len(cells)  # none twice
    for cell in cells:
        assert without_times(store[cell]) == without_times(alone[cell])
    assert make_table(list(Store(store.folder))).facts() == make_table(list(alone)).facts()


def without_times(result):
    card = {name: value for name, value in result.card.items() if "second" not in name}
    return replace(result, seconds=0.0, card=card)


def test_a_worker_with_another_version_is_named(dask_address, workshop) -> None:
    preload = workshop / "older.py"
    preload.write_text("import soda_tta._version\nsoda_tta._version.__version__ = '0.0.9'\n")
    with (
        dask_worker(dask_address, workshop, "--preload", str(preload)),
        find_backend("dask", dask_address) as backend,
        pytest.raises(SodaError, match=r"has soda-tta 0\.0\.9 instead of .*same versions"),
    ):
        list(backend.run(abs, [1]))


def test_a_scheduler_that_dies_ends_the_work_and_loses_nothing(
    dask, dask_scheduler, workshop
) -> None:
    how = {
        "adaptor": Bank().adaptor({"brightness": 0.3}),
        "images": workshop / "photos",
        "box": f"{workshop / 'slow_model.py'}:predict",
        "shard_size": 5,
    }

    def kill(done: int, total: int) -> None:
        if done == 2:
            dask_scheduler.kill()

    with pytest.raises(RunError, match="the Dask scheduler has gone away"):
        apply_archive(**how, out=workshop / "out", backend=dask, progress=kill)
    assert len(parts(workshop / "out")) >= 2
    apply_archive(**how, out=workshop / "out", resume=True)
    apply_archive(**how, out=workshop / "alone")
    assert parts(workshop / "out") == parts(workshop / "alone")


def test_a_scheduler_without_workers_is_named(dask_address, monkeypatch) -> None:
    monkeypatch.setattr("soda_tta.scale.dask_cluster.CONNECTING", 3)
    with pytest.raises(SodaError, match="has no worker; start some with 'dask worker"):
        find_backend("dask", dask_address)


def test_a_client_without_the_token_of_a_ray_cluster_is_told(ray, free_port: int) -> None:
    """In a process of its own: Ray reads the token once per process."""
    code = f"from soda_tta import find_backend; find_backend('ray', '127.0.0.1:{free_port}')"
    other = os.environ | {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=other, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN as on its head" in done.stderr


def test_an_address_without_ray_is_named(free_port: int) -> None:
    pytest.importorskip("ray")
    with pytest.raises(SodaError, match="no Ray cluster answers at"):
        find_backend("ray", f"127.0.0.1:{free_port}")


@pytest.mark.parametrize(
    ("script", "package"), [("archive_dask.py", "distributed"), ("archive_ray.py", "ray.data")]
)
def test_apply_inside_somebody_elses_pipeline(script: str, package: str) -> None:
    pytest.importorskip(package)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(ROOT / "examples" / script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "200 answers" in done.stdout and "'id': 0" in done.stdout
