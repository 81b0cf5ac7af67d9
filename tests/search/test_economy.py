"""The search of soda-e, driven by a synthetic black box."""

import numpy as np
import pytest

from soda_tta.search import EconomySearch, EconomySettings, Evolution, Pursuit
from soda_tta.search.economy import CHECK_EVERY, HELD_OUT

PARAMETERS = 3
IMAGES = 24
BATCH = 5  # not as many as there are held-out images, so that a loss can distinguish them
POPULATION = 4
GOAL = np.array([1.45, -0.45, 0.45])  # out of reach of moves of length 1 and 0.9
MOVES = np.concatenate([np.eye(PARAMETERS), -np.eye(PARAMETERS)])
FIRST_ROUND = 1 + len(MOVES)  # queries per image: the current point and every move


def respond(thetas, images):
    """Probabilities of three classes, (points, images, classes): confident near the goal.

    Each image responds a little differently, so that gains have a standard error.
    """
    own = np.random.default_rng(5).normal(0, 0.2, (IMAGES, PARAMETERS))[images]
    distance = ((thetas[:, None] - GOAL - own[None]) ** 2).sum(axis=-1)
    error = distance / (1 + distance)
    rows = np.stack([1 - 0.6 * error, 0.4 * error, 0.2 * error], axis=-1)
    return rows.astype(np.float32)


def loss_of_each(rows, images=None):
    return -np.log(rows[:, 0].astype(np.float64))


def loss(rows):
    return float(loss_of_each(rows).mean())


def start(queries: int = 100_000, **changes) -> EconomySearch:
    settings = {
        "pursuit": Pursuit(tried=3, patience=2, shorten=0.9, heats=1),
        "evolution": Evolution(population=POPULATION, sigma=0.2),
        "moves": MOVES,
        "units": np.ones(PARAMETERS),
        "batch": BATCH,
        "queries": queries,
        "loss_of_each": loss_of_each,
        "loss": loss,
        "seed": 2,
    }
    before = respond(np.zeros((1, PARAMETERS)), np.arange(IMAGES))[0]
    return EconomySearch(EconomySettings(**{**settings, **changes}), before)


def drive(search: EconomySearch, most: int | None = None, left: int | None = None) -> list:
    """Answer up to `most` questions; the stage, question and round of each."""
    log = []
    while most is None or len(log) < most:
        question = search.ask(left)
        if question is None:
            break
        stage = search.stage
        log.append((stage, question, search.tell(respond(*question))))
    return log


def assert_equal_logs(first: list, second: list) -> None:
    assert len(first) == len(second)
    for (stage, question, result), (other_stage, other_question, other_result) in zip(
        first, second, strict=True
    ):
        assert stage == other_stage
        np.testing.assert_array_equal(question.thetas, other_question.thetas)
        np.testing.assert_array_equal(question.images, other_question.images)
        assert result == other_result


def assert_equal_states(first: EconomySearch, second: EconomySearch) -> None:
    expected = first.state()
    state = second.state()
    assert state.keys() == expected.keys()
    for name, array in expected.items():
        assert state[name].dtype == array.dtype, name
        np.testing.assert_array_equal(state[name], array, err_msg=name)


def test_pursuit_then_evolution_reduce_the_loss() -> None:
    search = start()
    log = drive(search)
    stages = [stage for stage, _, _ in log]
    assert stages == sorted(stages, reverse=True)  # "pursuit" first, then "evolution"
    assert set(stages) == {"pursuit", "evolution"}
    assert search.stage == "done"
    assert not search.cut_short
    everything = np.arange(IMAGES)
    at_start = loss(respond(np.zeros((1, PARAMETERS)), everything)[0])
    at_pursuit = loss(respond(search.evolution_start[None], everything)[0])
    at_end = loss(respond(search.theta[None], everything)[0])
    assert at_end < at_pursuit < at_start


def test_a_search_paused_after_any_question_continues_bit_for_bit() -> None:
    whole = start()
    log = drive(whole)
    assert {stage for stage, _, _ in log} == {"pursuit", "evolution"}
    for paused_after in range(len(log) + 1):
        first = start()
        beginning = drive(first, most=paused_after)
        second = start()
        second.restore(first.state())
        assert_equal_states(first, second)
        assert_equal_logs(beginning + drive(second), log)
        assert_equal_states(whole, second)
        np.testing.assert_array_equal(second.theta, whole.theta)
        for restored, expected in zip(second.known(), whole.known(), strict=True):
            np.testing.assert_array_equal(restored, expected)


def test_a_search_paused_while_a_question_is_open_asks_it_again() -> None:
    whole = start()
    log = drive(whole)
    for paused_after in range(len(log)):
        first = start()
        beginning = drive(first, most=paused_after)
        first.ask()
        second = start()
        second.restore(first.state())
        assert_equal_logs(beginning + drive(second), log)
        assert_equal_states(whole, second)


def test_a_state_does_not_change_when_the_search_continues() -> None:
    whole = drive(start())
    for paused_after in range(len(whole)):
        first = start()
        drive(first, most=paused_after)
        state = first.state()
        drive(first)
        second = start()
        second.restore(state)
        assert_equal_logs(drive(second), whole[paused_after:])


def test_restoring_replaces_everything_a_search_has_learned() -> None:
    whole = start()
    log = drive(whole)
    first = start()
    drive(first, most=3)
    other = start()
    drive(other)  # has ended already
    other.restore(first.state())
    assert_equal_logs(drive(other), log[3:])


def test_ask_returns_the_same_question_until_responses_are_told() -> None:
    search = start()
    while (question := search.ask()) is not None:
        assert search.ask() is question
        assert search.ask(left=0) is question  # it may have been sent already
        spent = search.spent
        search.tell(respond(*question))
        assert search.spent == spent + question.queries
    assert search.ask() is None


def test_responses_already_received_are_not_asked_for_again() -> None:
    search = start()
    received = {(tuple(np.zeros(PARAMETERS)), image) for image in range(IMAGES)}
    first_questions = 0
    for stage, question, _ in drive(search):
        pairs = {(tuple(theta), image) for theta in question.thetas for image in question.images}
        if stage == "pursuit":
            if len(question.thetas) == 1:
                # At the current point: only images whose response is not known there.
                assert not pairs & received
                first_questions += 1
            received |= pairs
    assert first_questions  # the case above was reached


def test_the_first_round_does_not_ask_for_the_images_as_they_are() -> None:
    search = start()
    question = search.ask()
    np.testing.assert_array_equal(question.thetas, MOVES)
    assert len(question.images) == BATCH
    assert question.queries == len(MOVES) * BATCH


def test_rounds_account_for_all_queries_up_to_the_last_one() -> None:
    search = start()
    rounds = [result for _, _, result in drive(search) if result is not None]
    assert search.rounds == len(rounds)
    assert sum(each.queries for each in rounds) == search.reported <= search.spent
    assert len(rounds[0].losses) == FIRST_ROUND
    assert len(rounds[-1].losses) == POPULATION


def test_known_returns_the_responses_at_the_final_parameters() -> None:
    search = start()
    images, rows = search.known()
    np.testing.assert_array_equal(images, np.arange(IMAGES))  # before the first move
    np.testing.assert_array_equal(rows, respond(np.zeros((1, PARAMETERS)), images)[0])
    reached = 0
    while (question := search.ask()) is not None:
        search.tell(respond(*question))
        images, rows = search.known()
        assert rows.shape == (len(images), 3)
        if len(images):
            np.testing.assert_array_equal(rows, respond(search.theta[None], images)[0])
            reached += search.stage == "pursuit" and search.theta.any()
    assert reached
    assert not np.array_equal(search.theta, search.cache.theta)  # evolution has moved
    assert len(images) == 0


def test_fewer_queries_left_than_a_round_needs_end_the_search_cut_short() -> None:
    search = start()
    assert search.ask(left=FIRST_ROUND * BATCH - 1) is None
    assert search.stage == "done"
    assert search.cut_short
    assert search.spent == 0
    np.testing.assert_array_equal(search.theta, np.zeros(PARAMETERS))
    restored = start()
    restored.restore(search.state())
    assert restored.cut_short
    assert restored.ask() is None


def test_exactly_as_many_queries_left_as_a_round_needs_are_enough() -> None:
    search = start()
    question = search.ask(left=FIRST_ROUND * BATCH)
    assert question is not None
    search.tell(respond(*question))
    assert search.theta.any()
    assert search.ask(left=FIRST_ROUND * BATCH - question.queries) is None
    assert search.cut_short


@pytest.mark.parametrize("queries", [0, 34, 35, 200, 337, 500])
def test_the_planned_queries_are_never_exceeded_and_their_end_is_not_cut_short(
    queries: int,
) -> None:
    search = start(queries=queries)
    drive(search)
    assert search.stage == "done"
    assert search.spent <= queries
    assert not search.cut_short


def test_evolution_begins_only_if_a_whole_block_is_affordable() -> None:
    pursuit_only = start(evolution=Evolution(population=10_000, sigma=0.2))
    log = drive(pursuit_only)
    assert {stage for stage, _, _ in log} == {"pursuit"}
    block = CHECK_EVERY * POPULATION * BATCH + 2 * (IMAGES // HELD_OUT)
    for queries, begins in ((block - 1, False), (block, True)):
        search = start(queries=pursuit_only.spent + queries)
        assert any(stage == "evolution" for stage, _, _ in drive(search)) is begins


def test_evolution_is_trained_and_checked_on_different_images() -> None:
    held_out = set(range(IMAGES // HELD_OUT))
    checks = 0
    for stage, question, result in drive(start()):
        if stage == "evolution":
            images = set(question.images.tolist())
            if result is None:
                assert images == held_out
                checks += 1
            else:
                assert not images & held_out
                assert len(images) == BATCH
    assert checks >= 2


def test_evolution_that_does_not_help_held_out_images_is_discarded() -> None:
    def loss_without_a_gain_on_held_out_images(rows):
        return 0.0 if len(rows) == IMAGES // HELD_OUT else loss(rows)

    search = start(loss=loss_without_a_gain_on_held_out_images)
    log = drive(search)
    generations = [result for stage, _, result in log if stage == "evolution" and result]
    assert len(generations) == CHECK_EVERY
    assert not np.array_equal(search.evolution.theta, search.evolution_start)
    np.testing.assert_array_equal(search.theta, search.evolution_start)
    assert len(search.known()[0])  # so the responses at these parameters are still of use


def test_evolution_continues_while_held_out_images_gain() -> None:
    search = start()
    scores = []
    while (question := search.ask()) is not None:
        search.tell(respond(*question))
        if search.score is not None and search.score not in scores:
            scores.append(search.score)
    assert len(scores) > 2
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[:-1],
        lambda rows: rows[:, :-1],
        lambda rows: rows[..., :-1],
        lambda rows: rows[0],
        lambda rows: rows.transpose(1, 0, 2),
    ],
    ids=["a point too few", "an image too few", "a class too few", "one point", "transposed"],
)
def test_responses_of_a_wrong_shape_are_refused_and_the_question_stays_open(change) -> None:
    search = start()
    question = search.ask()
    rows = respond(*question)
    with pytest.raises(ValueError, match=r"expected \(6, 5, 3\)"):
        search.tell(change(rows))
    assert search.spent == 0
    assert search.ask() is question
    search.tell(rows)
    assert search.spent == question.queries


def test_responses_without_a_question_are_refused() -> None:
    search = start()
    with pytest.raises(ValueError, match=r"call ask\(\) first"):
        search.tell(np.zeros((6, 5, 3), np.float32))
    question = search.ask()
    search.tell(respond(*question))
    with pytest.raises(ValueError, match=r"call ask\(\) first"):
        search.tell(respond(*question))


def test_everything_follows_from_the_seed() -> None:
    first, second, third = (start(seed=seed) for seed in (3, 3, 4))
    log = drive(first)
    assert_equal_logs(drive(second), log)
    other = drive(third)
    assert not np.array_equal(other[0][1].images, log[0][1].images)


def test_two_questions_at_once_are_those_that_come_one_after_the_other() -> None:
    expected = drive(start())
    search = start()
    log = []
    pairs = 0
    while questions := search.ask_all():
        pairs += len(questions) - 1
        responses = [respond(*question) for question in questions]
        for question, rows in zip(questions, responses, strict=True):
            assert search.ask() is not None
            log.append((search.stage, question, search.tell(rows)))
    assert pairs
    assert_equal_logs(log, expected)
