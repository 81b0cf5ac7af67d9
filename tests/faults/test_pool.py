"""Several servers of one model, some of them bad: the answers of one good server, and the bill."""

import socket
import time

import numpy as np
import pytest

from soda_tta import adapt, load_box
from soda_tta.box import Ledger, Meter
from soda_tta.errors import BoxError, BoxUnavailable


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as once:
        return once.getsockname()[1]


def pool(servers, **options):
    return load_box(",".join(server.url for server in servers), **options)


def asked(box, images, ledger=None):
    return Meter(box, ledger).asking("probe")(images)


def test_the_answers_are_those_of_one_server_and_all_share_the_work(servers, images) -> None:
    alone = load_box(servers[0].url, batch=5)(images)
    for server in servers:
        server.requests.clear()
        server.delay = 0.02  # long beside what a busy machine adds
    rows = pool(servers, batch=5, workers=8)(images)
    np.testing.assert_array_equal(rows, alone)
    counts = [len(server.requests) for server in servers]
    assert sum(counts) == 24 and min(counts) >= 3


def test_one_of_four_is_dead_from_the_start(servers, images, expected, closed_port) -> None:
    dead = f"http://127.0.0.1:{closed_port}/v2/models/tiny"
    addresses = ",".join([dead, *(server.url for server in servers[1:])])
    with pytest.warns(UserWarning, match="1 of 4 servers of the model cannot be used now: .*reach"):
        box = load_box(addresses, batch=10)
    ledger = Ledger(limit=120)
    np.testing.assert_allclose(asked(box, images, ledger), expected, atol=1e-6)
    assert ledger.by_purpose() == {"probe": 120}
    assert box.fingerprint().startswith(f"{dead} version 1")


@pytest.mark.parametrize("hedge", [0.0, 0.5])
def test_one_of_four_dies_in_the_middle(servers, images, expected, hedge: float) -> None:
    box = pool(servers, batch=5, workers=8, hedge=hedge)
    servers[2].dies_after = 1
    ledger = Ledger(limit=1000, margin=64)
    began = time.monotonic()
    np.testing.assert_allclose(asked(box, images, ledger), expected, atol=1e-6)
    np.testing.assert_allclose(asked(box, images, ledger), expected, atol=1e-6)
    assert time.monotonic() - began < 2  # an attempt at another server does not wait
    assert ledger.queries == {"probe": 240}
    assert sum(server.computed for server in servers) <= ledger.total
    assert ledger.retried + ledger.hedged < 64


def test_one_slow_server_costs_no_more_than_its_share(servers, images) -> None:
    for server in servers:
        server.delay = 0.01
    box = pool(servers, batch=5, workers=8, retries=0)

    def seconds() -> float:
        began = time.monotonic()
        for _ in range(3):  # as steps of a search: each waits for all of its responses
            box(images)
        return time.monotonic() - began

    fair = seconds()
    servers[0].delay = 0.1
    box(images)  # how slow it is becomes known
    slow = seconds()
    assert slow < 3 * fair  # 4/3 by its share, 10 if every step waited for it


def test_a_flapping_server_is_asked_now_and_then(
    servers, images, expected, waits, monkeypatch
) -> None:
    monkeypatch.setattr("soda_tta.box.replicas.FIRST_PAUSE", 0.05)
    box = pool(servers[:2], batch=30, workers=2)
    (flapping, _) = box.box.box.replicas.all
    servers[0].flaps = True
    end = time.monotonic() + 0.4
    calls = 0
    while time.monotonic() < end:
        np.testing.assert_allclose(box(images[:30]), expected[:30], atol=1e-6)
        calls += 1
    assert 2 <= len(servers[0].requests) <= 5 < calls  # aside for 0.05, 0.1, 0.2 s
    assert flapping.pause >= 0.1
    assert not waits  # the other server was asked at once


def test_a_server_that_comes_back_gets_requests_again(servers, images) -> None:
    box = pool(servers[:2], batch=10, workers=2)
    servers[0].faults = ["silent"]
    box(images)
    (first, _) = box.box.box.replicas.all
    first.aside_until = 0.0  # its pause is over
    end = time.monotonic() + 5
    while not first.is_ready and time.monotonic() < end:
        box(images[:10])
    servers[0].requests.clear()
    box(images)
    assert servers[0].requests


def test_all_dead_is_the_error_of_one(servers, images, waits) -> None:
    box = pool(servers[:2], batch=60)
    for server in servers[:2]:
        server.dies_after = 0
    with pytest.raises(BoxUnavailable, match=r"cannot be reached: .* Gave up after 5 attempts"):
        box(images)
    for server in servers[:2]:
        with pytest.raises(BoxUnavailable, match="cannot be reached"):
            load_box(server.url, retries=0)
    with pytest.raises(BoxUnavailable, match="cannot be reached"):
        pool(servers[:2], retries=0)


def test_another_model_is_refused(servers) -> None:
    servers[1].version = "2"
    with pytest.raises(BoxError, match=r"has the versions '?2'?, and .* '?1'?; all addresses must"):
        pool(servers)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("grpc://127.0.0.1:8001/tiny", "does not begin with http://"),
        ("127.0.0.1:8000/v2/models/tiny", "does not begin with http://"),
        ("", "does not begin with http://"),
        ("http://127.0.0.1:8000", "names no model"),
        ("http://me:secret@127.0.0.1:8000/v2/models/tiny", "user or password"),
    ],
)
def test_bad_lists_of_addresses(server, second: str, message: str) -> None:
    with pytest.raises(BoxError, match=message):
        load_box(f"{server.url},{second}")


def test_bad_options(server) -> None:
    with pytest.raises(BoxError, match="listed twice"):
        load_box(f"{server.url},{server.url}")
    with pytest.raises(BoxError, match="hedge needs several servers"):
        load_box(server.url, hedge=0.1)
    with pytest.raises(BoxError, match="a share from 0 to 1"):
        load_box(server.url, hedge=2)
    with pytest.raises(BoxError, match="replicas='srv' is not valid"):
        load_box(server.url, replicas="srv")
    with pytest.raises(BoxError, match="max_qps is 0"):
        load_box(server.url, max_qps=0)


def test_a_straggler_is_hedged_and_the_ledger_shows_it(servers, images, expected) -> None:
    servers[0].delay = servers[1].delay = 0.003
    box = pool(servers[:2], batch=5, workers=2, hedge=0.2)
    ledger = Ledger(limit=1000, margin=200)
    asked(box, images, ledger)
    servers[0].faults = ["trickle"]  # would take the 30 seconds of the time-out
    hedged = ledger.hedged
    began = time.monotonic()
    np.testing.assert_allclose(asked(box, images, ledger), expected, atol=1e-6)
    assert time.monotonic() - began < 5
    assert ledger.hedged >= hedged + 5
    assert ledger.by_purpose() == {"probe": 240, "hedged": ledger.hedged}
    assert sum(server.computed for server in servers) <= ledger.total <= 240 + 0.2 * 240 + 20


def test_a_run_over_a_pool_is_that_over_one_server(servers, images, tmp_path) -> None:
    alone = adapt(images, load_box(servers[0].url), budget=6, seed=1)
    servers[1].dies_after = 3
    run = adapt(images, pool(servers), budget=6, seed=1, out=tmp_path / "run")
    np.testing.assert_array_equal(run.probabilities, alone.probabilities)
    assert run.ledger.queries == alone.ledger.queries
    assert sum(server.computed for server in servers[1:]) <= run.ledger.total


def test_the_addresses_behind_a_name_are_servers(
    monkeypatch, more_servers, images, expected
) -> None:
    one = more_servers()
    port = one.http.server_port
    two = more_servers(("127.0.0.2", port))
    addresses = ["127.0.0.1"]

    real = socket.getaddrinfo

    def getaddrinfo(host, port, *args, **options):
        if host != "pool.test":
            return real(host, port, *args, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    url = f"http://pool.test:{port}/v2/models/tiny"
    box = load_box(url, replicas="dns", batch=10)
    np.testing.assert_allclose(box(images), expected, atol=1e-6)
    assert one.headers[-1]["host"] == f"pool.test:{port}"
    replicas = box.box.box.replicas
    addresses.append("127.0.0.2")  # the service grows
    replicas.look_up()
    assert [replica.name for replica in replicas.all] == [
        f"{url} at 127.0.0.1",
        f"{url} at 127.0.0.2",
    ]
    replicas.probe(replicas.all[1])
    box(images)
    assert two.requests
    assert box.fingerprint() == f"{url} version 1 output p"
