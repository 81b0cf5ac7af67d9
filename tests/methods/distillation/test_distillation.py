"""Whole runs of DINE and BETA on tiny data: queries, seeds, settings and gain."""

import json
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from soda_tta import adapt
from soda_tta.box import ModuleBox
from soda_tta.engine.events import Step
from soda_tta.errors import MethodError
from soda_tta.methods.distillation import stages
from soda_tta.methods.distillation.beta import beta
from soda_tta.methods.distillation.dine import dine
from soda_tta.methods.distillation.distillation import TRAINED
from soda_tta.zoo import ENTRIES

BOTH = pytest.mark.parametrize("method", [dine, beta], ids=["dine", "beta"])


@BOTH
def test_a_run_sends_one_query_per_image_and_follows_its_seed(method, toy) -> None:
    images, labels = toy.coloured(50)
    teacher = toy.teacher(images, labels)
    module = toy.tiny()
    weights = {name: weight.clone() for name, weight in module.state_dict().items()}
    random_state = torch.get_rng_state()
    runs = []
    events = []
    for seed in (1, 1, 2):
        events.clear()
        how = toy.small(method, module=module)
        run = adapt(images, teacher, method=how, budget=1, seed=seed, listener=events.append)
        runs.append(run.probabilities)
    assert teacher.queries == 3 * 50
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    np.testing.assert_allclose(runs[0].sum(axis=1), 1, atol=1e-5)
    assert torch.equal(random_state, torch.get_rng_state())
    assert all(torch.equal(weight, weights[name]) for name, weight in module.state_dict().items())
    steps = [event for event in events if isinstance(event, Step)]
    assert [step.epoch for step in steps][:3] == [1, 2, 3]
    for step in steps:
        assert step.queries == 0
        assert math.isfinite(step.loss)
        assert step.mutual_information >= -1e-6


@BOTH
def test_a_function_that_does_not_take_the_number_of_classes_is_refused(method, toy) -> None:
    images, _ = toy.coloured(20)
    how = toy.small(method, module=lambda: toy.tiny())
    message = r"called with the number of classes, 4, .* raised TypeError"
    with pytest.raises(MethodError, match=message):
        adapt(images, ModuleBox(toy.tiny()), method=how)


@BOTH
def test_the_deployed_model_is_not_changed_even_as_its_own_target(method, toy) -> None:
    images, _ = toy.coloured(20)
    deployed = toy.tiny()
    box = ModuleBox(deployed)
    before = box.fingerprint()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = adapt(images, box, method=toy.small(method, module=deployed))
    # there are few images
    assert any("MixMatch was left out" in str(each.message) for each in caught) == (method is beta)
    assert any("MixMatch was left out" in text for text in run.notices) == (method is beta)
    assert box.fingerprint() == before
    assert run.ledger.total == 20


@BOTH
@pytest.mark.parametrize("count", [2, 3, 17, 33])
def test_few_images_and_incomplete_batches_are_answered(method, toy, make_work, count: int) -> None:
    images, labels = toy.coloured(count)
    work = make_work(images, toy.certain(labels))
    rows = toy.small(method, epochs=1, finetune_epochs=1).adapt(work).probabilities
    assert rows.shape == (count, toy.classes)
    assert np.isfinite(rows).all()
    assert len(work.history) == 2


@BOTH
def test_one_image_is_refused_with_a_remedy(method, toy, make_work) -> None:
    work = make_work(toy.coloured(1)[0], toy.certain([0]))
    with pytest.raises(MethodError, match="at least 2 images"):
        toy.small(method).adapt(work)


@BOTH
def test_the_default_settings_are_the_published_ones_with_a_random_resnet20(
    method, toy, make_work
) -> None:
    settings = method.settings
    expected = {
        "epochs": 120,
        "finetune_epochs": 30,
        "batch": 64,
        "head_lr": 1e-2,
        "momentum": 0.9,
        "weight_decay": 1e-3,
        "ema": 0.6,
        "mix": 1.0,
        "mixup_alpha": 0.3,
        "target": "resnet20-random",
        "module": None,
        "backbone_lr": 1e-2,
    }
    assert {name: settings[name] for name in expected} == expected
    assert method.queries(100) == {}
    work = make_work(toy.coloured(4)[0], toy.certain(range(4)))
    rows = method.but(epochs=1, finetune_epochs=0).adapt(work).probabilities
    assert rows.shape == (4, toy.classes)


def test_a_network_of_the_zoo_has_the_learning_rate_of_a_trained_one() -> None:
    assert set(TRAINED) <= set(ENTRIES)
    assert dine.but(target="resnet32-random").backbone_rate == 1e-2
    assert [dine.but(target=name).backbone_rate for name in TRAINED[:2]] == [1e-3, 1e-3]


@BOTH
def test_a_module_is_described_by_kind_size_and_weights(method, toy, make_work) -> None:
    how = method.but(module=toy.tiny())
    assert how.settings["backbone_lr"] == 1e-3
    assert how.settings["target"] == "given"
    assert how.settings["module"].startswith("Sequential, 372 parameters, weights ")
    json.dumps(how.settings)
    other = toy.tiny()
    nn.init.zeros_(other[0].weight)
    assert method.but(module=other).settings["module"] != how.settings["module"]
    assert method.but(module=toy.tiny).settings["module"] == "made by tiny"
    work = make_work(toy.coloured(4)[0], toy.certain(range(4)))
    factory = method.but(module=toy.tiny, epochs=1, finetune_epochs=0)
    assert factory.adapt(work).probabilities.shape == (4, toy.classes)
    assert method.but(backbone_lr="0.5", module=toy.tiny()).backbone_rate == 0.5


@BOTH
@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Flatten(), "no Linear layer"),
        (nn.Sequential(nn.Flatten(), nn.Linear(7, 4)), "does not take these images"),
        (nn.Sequential(nn.Linear(12, 4), nn.Flatten()), "must see one vector"),
        (lambda classes: classes, "returned int"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused_with_the_reason(
    method, toy, make_work, module, message: str
) -> None:
    work = make_work(toy.coloured(4)[0], toy.certain(range(4)))
    with pytest.raises(MethodError, match=message):
        method.but(module=module).adapt(work)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        (dine, {"target": "vgg"}),
        (dine, {"module": "net.pt"}),
        (dine, {"batch": 1}),
        (dine, {"ema": 2}),
        (dine, {"size": -1}),
        (dine, {"head_lr": 0}),
        (dine, {"finetune_epochs": -1}),
        (dine, {"threshold": 0.5}),
        (beta, {"threshold": 0}),
        (beta, {"temperature": 0}),
        (beta, {"lam_u": -1}),
    ],
)
def test_impossible_settings_are_refused(method, wrong) -> None:
    with pytest.raises(MethodError):
        method.but(**wrong)


@pytest.mark.parametrize(
    ("method", "epochs", "updates"),
    [(dine, 1, 1), (dine, 10, 9), (dine, 12, 11), (beta, 1, 0), (beta, 10, 9), (beta, 20, 10)],
)
def test_the_memory_is_refreshed_every_tenth_but_never_from_an_untrained_student(
    toy, make_work, monkeypatch, method, epochs: int, updates: int
) -> None:
    images, labels = toy.coloured(8)
    work = make_work(images, toy.certain(labels))
    calls = []
    monkeypatch.setattr(stages, "refresh", lambda *parts: calls.append(parts) or parts[0])
    # two steps per epoch
    toy.small(method, epochs=epochs, finetune_epochs=0, batch=4).adapt(work)
    assert len(calls) == updates
    assert work.history[-1].lr == pytest.approx(1e-2 * stages.distil_rate(1))


@BOTH
def test_the_student_is_better_than_a_teacher_that_is_wrong_one_time_in_five(
    method, toy, make_work
) -> None:
    images, labels = toy.coloured(256)
    before = toy.teacher(images, labels)(images)
    how = method.but(epochs=12, finetune_epochs=3, batch=32, module=toy.tiny, backbone_lr=1e-2)
    after = how.adapt(make_work(images, before)).probabilities
    teacher = (before.argmax(axis=1) == labels).mean()
    student = (after.argmax(axis=1) == labels).mean()
    assert teacher == pytest.approx(1 - toy.wrong, abs=0.06)
    assert student > teacher + 0.1, (teacher, student)
