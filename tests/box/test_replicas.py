"""Which replica gets the next request: by outstanding requests, speed and health, by hand."""

import numpy as np
import pytest

from soda_tta.box import CallableBox
from soda_tta.box.replicas import FORGET, LONGEST_PAUSE, Replica, Replicas
from soda_tta.errors import BoxUnavailable


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Servers:
    """Three replicas under a clock of their own; those in `down` cannot be opened."""

    def __init__(self, count: int = 3) -> None:
        self.down: set[str] = set()
        self.clock = Clock()
        names = "abcdefgh"[:count]
        self.replicas = Replicas(
            [Replica(name, lambda name=name: self.open(name), self.open(name)) for name in names],
            lambda box: "another model" if box is None else None,
            clock=self.clock,
        )

    def open(self, name: str) -> CallableBox:
        if name in self.down:
            raise BoxUnavailable("down")
        return CallableBox(lambda images: np.full((len(images), 2), 0.5))

    def taken(self, count: int) -> str:
        """The names of the replicas for the next requests."""
        return "".join(self.replicas.take().name for _ in range(count))

    def __getitem__(self, name: str) -> Replica:
        return next(each for each in self.replicas.all if each.name == name)


@pytest.fixture
def servers(monkeypatch) -> Servers:
    # probes run at once, not in the background
    monkeypatch.setattr(
        "soda_tta.box.replicas.threading.Thread.start", lambda thread: pending.append(thread)
    )
    pending.clear()
    return Servers()


pending = []


def run_probes() -> None:
    while pending:
        pending.pop().run()


def test_the_least_busy_gets_the_request_and_ties_go_round(servers) -> None:
    assert servers.taken(6) == "abcabc"
    servers.replicas.succeeded(servers["b"], 0.1)
    assert servers.taken(2) == "ba"


def test_a_slow_one_counts_as_busier_until_that_is_forgotten(servers) -> None:
    for name, seconds in {"a": 0.01, "b": 0.01, "c": 0.1}.items():
        servers.replicas.take()
        servers.replicas.succeeded(servers[name], seconds)
    assert servers.taken(8) == "abababab"
    servers.clock.now += FORGET + 1
    assert servers.taken(3) == "cab"  # one trial only
    servers.replicas.succeeded(servers["c"], 0.01)  # it has recovered
    assert servers.taken(2) == "cc"


def test_differences_below_a_factor_of_three_do_not_count(servers) -> None:
    for name, seconds in {"a": 0.01, "b": 0.02, "c": 0.029}.items():
        servers.replicas.take()
        servers.replicas.succeeded(servers[name], seconds)
    assert sorted(servers.taken(6)) == sorted("abcabc")


def test_the_pauses_of_one_that_keeps_failing_grow(servers) -> None:
    servers.down.add("a")
    servers.taken(1)
    servers.replicas.failed(servers["a"], BoxUnavailable("down"))
    pauses = []
    for _ in range(9):
        until = servers["a"].aside_until
        pauses.append(until - servers.clock.now)
        assert "a" not in servers.taken(4)
        servers.clock.now = until
        servers.taken(1)
        run_probes()
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, LONGEST_PAUSE, LONGEST_PAUSE]
    servers.down.clear()
    servers.clock.now += LONGEST_PAUSE
    servers.taken(1)
    run_probes()
    assert servers.taken(30).count("a") == 1  # on trial
    servers.replicas.succeeded(servers["a"], 0.1)
    assert servers.taken(3) == "aaa"


def test_one_that_describes_its_model_and_fails_again_pauses_longer(servers) -> None:
    for expected in (0.5, 1, 2):
        while servers.replicas.take().name != "a":
            pass
        servers.replicas.failed(servers["a"], BoxUnavailable("overloaded"))
        assert servers["a"].aside_until - servers.clock.now == expected
        servers.clock.now = servers["a"].aside_until
        servers.taken(1)
        run_probes()
    servers.clock.now += 100  # a good time, and then
    while servers.replicas.take().name != "a":
        pass
    servers.replicas.failed(servers["a"], BoxUnavailable("overloaded"))
    assert servers["a"].aside_until - servers.clock.now == 0.5


def test_the_wait_that_a_server_asks_for_is_kept(servers) -> None:
    servers.taken(1)
    servers.replicas.failed(servers["a"], BoxUnavailable("slow down", 7.0, sent=False))
    assert servers["a"].aside_until == servers.clock.now + 7
    servers.replicas.failed(servers["b"], BoxUnavailable("slow down", 1e9, sent=False))
    assert servers["b"].aside_until == servers.clock.now + LONGEST_PAUSE


def test_if_all_are_aside_the_first_to_be_probed_is_asked(servers) -> None:
    for name in "abc":
        servers.taken(1)
        servers.replicas.failed(servers[name], BoxUnavailable("down"))
        servers.clock.now += 0.1
    assert not servers.replicas.has_ready()
    assert servers.replicas.take(ready=True) is None
    assert servers.taken(1) == "a"
    servers.replicas.succeeded(servers["a"], 0.1)
    assert servers.replicas.has_ready()


def test_one_that_comes_back_with_another_model_stays_aside(servers) -> None:
    servers.taken(1)
    servers.replicas.failed(servers["a"], BoxUnavailable("down"))
    servers["a"].open = lambda: None
    servers.replicas.probe(servers["a"])
    assert not servers["a"].is_ready
