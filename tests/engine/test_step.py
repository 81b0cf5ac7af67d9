"""Gradients against finite differences, and the objective's slope against its value."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from soda_tta.adaptors import PaperNetwork
from soda_tta.box import CallableBox, Input, Meter, ModuleBox, Quantised
from soda_tta.data import open_images
from soda_tta.engine.loop import Training
from soda_tta.engine.step import (
    Batch,
    Task,
    changes_by_group,
    loss_and_gradient,
    losses_of_candidates,
    norm_slope,
)
from soda_tta.errors import BoxError
from soda_tta.objectives.equations import PseudoLabels, Soda, perturbation_norm
from soda_tta.objectives.reliable import Selection
from soda_tta.randomness import RandomStream, generator
from soda_tta.search import SGD, MultiPoint, PerImage

NETWORKS = [PaperNetwork(width=4), PaperNetwork(width=4, blocks=1, dropout=0.5)]
OBJECTIVES = [Soda(alpha=0.5), PseudoLabels(), Soda(alpha=0.0, beta=0.05)]


@pytest.mark.parametrize("objective", OBJECTIVES[:2], ids=str)
@pytest.mark.parametrize("reliable", [[True] * 6, [False] * 6, [True, False] * 3])
def test_the_slope_is_the_derivative_of_the_value(objective, reliable) -> None:
    rows = np.random.default_rng(0).dirichlet(np.full(4, 3.0), 6)
    labels = np.array([0, 1, 2, 3, 0, 1])
    mask = np.array(reliable)
    slope = objective.slope(rows, labels, mask)
    for index in np.ndindex(*rows.shape):
        nudge = np.zeros(rows.shape)
        nudge[index] = 1e-6
        above, below = (objective(rows + sign * nudge, labels, mask).value for sign in (1, -1))
        difference = (above - below) / 2e-6
        assert slope[index] == pytest.approx(difference, abs=1e-4)


@pytest.fixture
def task(images) -> Task:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(192, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)
    )
    return Task(
        images=open_images(images * 0.8 + 0.1),
        meter=Meter(ModuleBox(module, logits=True)),
        selection=Selection(np.arange(50) % 4, np.arange(50) % 5 == 0),
        objective=Soda(),
        batch=50,
        seed=0,
        reserve=0,
    )


def batch_of(task: Task, adaptor, images: int, noise: int = 0) -> Batch:
    """The first images of a task, sent to its model without being counted."""
    return Batch(task, task.meter.box, adaptor, np.arange(images), noise)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_the_gradient_agrees_with_finite_differences_of_the_black_box_loss(
    task, objective, network
) -> None:
    adaptor = network.build(seed=0)
    batch = batch_of(replace(task, objective=objective), adaptor, images=20, noise=3)
    theta = adaptor.parameters.astype(np.float64)
    loss, gradient = loss_and_gradient(batch, theta)
    (same,) = losses_of_candidates(batch, theta[None])
    assert loss.value == pytest.approx(same.value, abs=1e-5)
    direction = np.random.default_rng(1).standard_normal(theta.size)
    direction /= np.linalg.norm(direction)
    step = 1e-2
    pair = np.stack([theta + step * direction, theta - step * direction])
    plus, minus = losses_of_candidates(batch, pair)
    slope = (plus.value - minus.value) / (2 * step)
    assert gradient @ direction == pytest.approx(slope, rel=0.1, abs=2e-3)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_the_gradient_is_the_same_in_pieces(task, objective, monkeypatch) -> None:
    adaptor = PaperNetwork(width=4).build(seed=0)
    batch = batch_of(replace(task, objective=objective), adaptor, images=19)
    whole, gradient = loss_and_gradient(batch, adaptor.parameters)
    # four images per piece; the last piece has three
    monkeypatch.setattr("soda_tta.engine.step.PIECE_BYTES", 0)
    pieces, sum_of_gradients = loss_and_gradient(batch, adaptor.parameters)
    assert pieces.value == pytest.approx(whole.value, abs=1e-6)
    np.testing.assert_allclose(sum_of_gradients, gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_the_slope_of_the_norm_is_its_part_of_the_whole_gradient(task, network) -> None:
    adaptor = network.build(seed=0)
    theta = adaptor.parameters.astype(np.float64)
    with_norm, without = (
        batch_of(replace(task, objective=Soda(alpha=0.5, beta=beta)), adaptor, 19, noise=3)
        for beta in (0.05, 0.0)
    )
    difference = loss_and_gradient(with_norm, theta)[1] - loss_and_gradient(without, theta)[1]
    np.testing.assert_allclose(norm_slope(with_norm, theta), difference, atol=1e-5)


@pytest.mark.parametrize("search", [MultiPoint(), PerImage()], ids=str)
def test_the_norm_is_differentiated_and_not_estimated(task, search) -> None:
    """A constant box gives nothing to estimate: the step comes from the norm alone."""
    box = CallableBox(lambda images: np.full((len(images), 4), 0.25, np.float32))
    task = replace(task, meter=Meter(box), objective=Soda(beta=0.05))
    adaptor = PaperNetwork(width=4).build(seed=0)
    theta = adaptor.parameters.astype(np.float64)
    rule = SGD(lr=0.1, momentum=0, weight_decay=0)
    started = search.start(theta, step=rule, units=1.0, seed=0)
    training = Training(task, adaptor, started, search.candidates)
    (step,) = training.advance(1, "probe")
    order = generator(0, RandomStream.ORDER, 0).permutation(50)  # of the first epoch
    batch = Batch(task, box, adaptor, order, noise=0)
    slope = norm_slope(batch, theta).astype(np.float64)  # a step is made in double precision
    np.testing.assert_allclose(training.search.theta, theta - 0.1 * slope)
    (whole,) = losses_of_candidates(batch, theta[None])
    assert step.loss == pytest.approx(whole.value)


@pytest.mark.parametrize("deviation", [0.2, 0.4])
def test_the_norm_is_of_normalised_pixels(task, deviation: float) -> None:
    adaptor = PaperNetwork(width=4, deviation=deviation).build(seed=0)
    images = task.images[np.arange(19)]
    theta = adaptor.parameters.astype(np.float64)
    norm = 0.05 * perturbation_norm((adaptor(images) - images) / deviation)

    def losses(beta: float) -> list[float]:
        batch = batch_of(replace(task, objective=Soda(beta=beta)), adaptor, images=19)
        (of_candidate,) = losses_of_candidates(batch, theta[None])
        grouped, _ = changes_by_group(batch, theta[None].repeat(3, axis=0))
        differentiated, _ = loss_and_gradient(batch, theta)
        return [of_candidate.value, grouped.value, differentiated.value]

    np.testing.assert_allclose(np.subtract(losses(0.05), losses(0.0)), norm, rtol=1e-4)


def test_a_gradient_costs_one_query_per_image(task) -> None:
    adaptor = PaperNetwork(width=4).build(seed=0)
    batch = Batch(task, task.meter.asking("probe"), adaptor, np.arange(20), noise=0)
    loss_and_gradient(batch, adaptor.parameters)
    assert task.meter.ledger.queries == {"probe": 20}


def test_boxes_without_a_gradient_are_refused(task) -> None:
    with pytest.raises(BoxError, match="PyTorch module"):
        CallableBox(lambda x: x).differentiable(torch.zeros(1, 3, 8, 8))
    with pytest.raises(BoxError, match="rounds"):
        Quantised(task.meter.box).differentiable(torch.zeros(1, 3, 8, 8))


def test_differentiable_probabilities_are_those_of_the_box(task, images) -> None:
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))
    for facts in (
        Input(),
        Input(channels="BGR", pixel_range=255, mean=(1, 2, 3), std=(50, 60, 70)),
        Input(layout="NHWC"),
    ):
        box = ModuleBox(module, input=facts, logits=True)
        ours = box.differentiable(torch.from_numpy(images)).detach().numpy()
        np.testing.assert_allclose(ours, box(images), atol=1e-5)
