"""Live streams: a shift is learned, gated and remembered; state is exact; memory is bounded."""

import json
import threading

import numpy as np
import pytest
from tests.engine.live_traffic import Templates, answered, scenes

from soda_tta import Stream
from soda_tta.engine import live_condition
from soda_tta.engine.live import LiveStream
from soda_tta.engine.live_arrivals import MOST
from soda_tta.engine.live_buffer import Buffer, Item
from soda_tta.errors import BudgetError, MethodError, RunError

BUDGET = 6  # queries of the learner per image: more than usual, so that tests are short


class Learned:
    """A stream that has seen clean images, then faded ones, and has learned to restore them."""

    def __init__(self, folder) -> None:
        self.model = Templates()
        self.events = []
        self.stream = LiveStream(
            self.model,
            buffer=400,
            learn_budget=BUDGET,
            directory=folder,
            listener=self.events.append,
        )
        self.spent = []  # queries of the learner per arrived image, after each request
        self.right = {}
        for name, images in (
            ("clean", scenes(400, 1)),
            ("halfway", scenes(200, 2, faded=True)),
            ("faded", scenes(600, 3, faded=True)),
        ):
            self.right[name] = answered(self._counted, *images)
            if name == "halfway":
                self.stream.save(folder / "halfway.safetensors")
                self.at_halfway = self.stream.ledger.by_purpose()
        self.stream.save()

    def _counted(self, images):
        answers = self.stream(images)
        ledger = self.stream.ledger
        learned = ledger.total - ledger.queries["serve"]
        self.spent.append(learned / self.stream.facts()["arrived"])
        return answers


@pytest.fixture(scope="module")
def learned(tmp_path_factory) -> Learned:
    return Learned(tmp_path_factory.mktemp("live"))


def names_of(events) -> list[str]:
    return [event.facts()["event"] for event in events]


def test_a_shift_becomes_a_condition_with_an_adaptor_of_its_own(learned) -> None:
    assert learned.right["clean"].mean() > 0.95
    assert learned.right["halfway"].mean() < 0.5
    assert learned.right["faded"][-100:].mean() > 0.95
    clean, faded = learned.stream.facts()["sources"][0]["conditions"]
    assert clean["adaptor"] == "leaves the image unchanged"
    assert "contrast" in faded["adaptor"] and "low contrast" in faded["words"]
    assert names_of(learned.events).count("promoted") == 1


def test_every_query_is_counted_and_the_budget_holds_after_every_request(learned) -> None:
    assert learned.stream.ledger.total == learned.model.asked
    assert max(learned.spent) <= BUDGET
    assert set(learned.stream.ledger.queries) == {"serve", "probe", "judge", "watch"}


def test_events_are_written_to_the_audit_log(learned) -> None:
    lines = (learned.stream.directory / "audit.jsonl").read_text().splitlines()
    written = [json.loads(line) for line in lines]
    assert [entry["event"] for entry in written] == names_of(learned.events)
    (promoted,) = [entry for entry in written if entry["event"] == "promoted"]
    assert promoted["p_value"] <= promoted["level"] and promoted["time"].startswith("20")


def test_a_saved_stream_continues_bit_for_bit(learned, tmp_path) -> None:
    """From the middle of a search to the end, where a candidate was promoted."""
    folder = learned.stream.directory
    again = LiveStream.load(folder / "halfway.safetensors", learned.model)
    assert again.ledger.by_purpose() == learned.at_halfway
    right = answered(again, *scenes(600, 3, faded=True))
    assert np.array_equal(right, learned.right["faded"])
    again.save(tmp_path / "again.safetensors")
    stored = (folder / "stream.safetensors").read_bytes()
    assert (tmp_path / "again.safetensors").read_bytes() == stored


def test_a_shift_that_returns_finds_its_adaptor_at_once(learned) -> None:
    stream = LiveStream.load(learned.stream.directory / "stream.safetensors", learned.model)
    probes = stream.ledger.queries["probe"]
    assert answered(stream, *scenes(100, 4)).mean() > 0.95
    assert answered(stream, *scenes(100, 5, faded=True)).mean() > 0.95
    assert stream.ledger.queries["probe"] - probes <= BUDGET * 200


def test_an_adaptor_that_stops_winning_is_rolled_back(learned, monkeypatch) -> None:
    monkeypatch.setattr(live_condition, "WATCHED", 2)
    stream = LiveStream.load(learned.stream.directory / "stream.safetensors", learned.model)
    events = []
    stream.listener = events.append
    learned.model.replaced = True
    try:
        for seed in range(8):
            answered(stream, *scenes(100, 10 + seed, faded=True))
            if "rolled back" in names_of(events):
                break
    finally:
        learned.model.replaced = False
    (rolled_back,) = [event for event in events if event.facts()["event"] == "rolled back"]
    assert "as they are" in rolled_back.reason
    assert stream.shelf() is None


def test_a_rollback_by_request(learned) -> None:
    stream = LiveStream.load(learned.stream.directory / "stream.safetensors", learned.model)
    images, _ = scenes(4, 6, faded=True)
    changed, routes = stream.adapted(images)
    assert not np.array_equal(changed, images)
    assert routes.conditions.tolist() == [1] * 4
    stream.roll_back()
    same, routes = stream.adapted(images)
    assert same is images and routes is None


def test_images_without_a_shift_promote_nothing() -> None:
    events = []
    stream = LiveStream(Templates(), buffer=400, listener=events.append)
    answered(stream, *scenes(600, 7))
    assert "promoted" not in names_of(events)


def test_answers_survive_a_model_that_fails_the_learner() -> None:
    model = Templates()
    events = []
    stream = LiveStream(model, buffer=400, listener=events.append)
    model.fails = True
    assert answered(stream, *scenes(420, 1)).mean() > 0.95
    assert names_of(events)[-1] == "learning failed" and "out of order" in events[-1].reason
    model.fails = False
    answered(stream, *scenes(20, 2))
    assert stream.ledger.queries["probe"] > 0


def test_images_arrive_from_many_threads_while_the_learner_works() -> None:
    model = Templates()
    stream = LiveStream(model, buffer=400)
    images, _ = scenes(600, 8)

    def client(start: int) -> None:
        for place in range(start, start + 150, 10):
            sent, routes = stream.adapted(images[place : place + 10])
            stream.arrived(images[place : place + 10], model(sent), routes=routes)

    threads = [threading.Thread(target=client, args=(start,)) for start in range(0, 600, 150)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        stream.learn()
    while stream.learn():
        pass
    facts = stream.facts()
    assert facts["arrived"] == 600 and facts["waiting"] == 0
    assert facts["sources"][0]["buffer"] == 400
    assert sum(facts["queries"].values()) <= 2 * 600


def test_images_that_the_learner_is_too_slow_for_are_counted_and_forgotten() -> None:
    stream = LiveStream(Templates())
    images, _ = scenes(100, 9)
    for _ in range(20):
        stream.arrived(images, np.full((100, 4), 0.25))
    facts = stream.facts()
    assert facts["waiting"] <= MOST and facts["missed"] == 2000 - facts["waiting"]


def test_sources_are_kept_apart_and_the_oldest_makes_room() -> None:
    events = []
    stream = LiveStream(Templates(), sources=2, listener=events.append)
    for key in ("north", "south", "north", "east"):
        answered(stream, *scenes(20, 3), key=key)
    assert [source["key"] for source in stream.facts()["sources"]] == ["north", "east"]
    assert names_of(events) == ["dropped"] and events[0].key == "south"


def test_a_client_that_sends_much_does_not_push_out_the_others() -> None:
    buffer = Buffer(40)
    blank = np.zeros((3, 8, 8), np.uint8)
    for number in range(1000):
        client = "quiet" if number % 25 == 0 else "loud"
        buffer.add(Item(number, blank, np.ones(2), np.zeros(17), 0, 0, client))
    assert buffer.clients == {"quiet": 20, "loud": 20}
    numbers = [item.number for item in buffer.items]
    assert numbers == sorted(numbers)


def test_a_buffer_is_bounded_in_bytes() -> None:
    buffer = Buffer(40, most_bytes=5 * 192)
    for number in range(9):
        image = np.zeros((3, 8, 8), np.uint8)
        buffer.add(Item(number, image, np.ones(2), np.zeros(17), 0, 0, None))
    assert [item.number for item in buffer.items] == [4, 5, 6, 7, 8]


def test_stream_is_the_front_door() -> None:
    assert isinstance(Stream(Templates(), method="soda-e", learn_budget=1), LiveStream)
    with pytest.raises(MethodError, match=r"no setting 'budget'; it has learn_budget, .* tried"):
        Stream(Templates(), method="soda-e", budget=5)


def test_the_front_door_continues_a_stream_in_its_directory(learned, tmp_path) -> None:
    path = learned.stream.directory / "stream.safetensors"
    events = []
    stream = Stream.load(
        path, learned.model, method="soda-e", directory=tmp_path, listener=events.append
    )
    stream.roll_back()
    stream.save()
    assert (tmp_path / "stream.safetensors").is_file()
    (line,) = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert json.loads(line)["event"] == "rolled back" and names_of(events) == ["rolled back"]


def test_a_file_is_loaded_by_its_own_method(learned, tmp_path) -> None:
    path = learned.stream.directory / "stream.safetensors"
    with pytest.raises(RunError, match='is a stream of soda-e: pass method="soda-e"'):
        Stream.load(path, learned.model)
    other = tmp_path / "online.safetensors"
    Stream(learned.model).save(other)
    with pytest.raises(RunError, match="is not a stream of soda-e"):
        Stream.load(other, learned.model, method="soda-e")
    with pytest.raises(MethodError, match="directory is for a stream of soda-e"):
        Stream.load(other, learned.model, directory=tmp_path)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"learn_budget": -1}, BudgetError),
        ({"level": 0.6}, MethodError),
        ({"buffer": 10}, MethodError),
        ({"average": True}, MethodError),
        ({"method": "soda"}, MethodError),
        ({"colour": 1}, MethodError),
    ],
)
def test_settings_that_are_not_valid_are_refused(settings, error) -> None:
    with pytest.raises(error):
        LiveStream(Templates(), **settings)


def test_a_file_of_another_model_is_refused(learned) -> None:
    path = learned.stream.directory / "stream.safetensors"
    with pytest.raises(RunError, match="another model"):
        LiveStream.load(path, lambda images: np.full((len(images), 4), 0.25))
    with pytest.raises(RunError, match="does not exist"):
        LiveStream.load(path.with_name("none"), learned.model)
