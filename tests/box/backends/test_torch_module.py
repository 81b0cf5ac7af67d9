"""A PyTorch module as a box: queried without gradients, and open to white-box methods."""

import numpy as np
import pytest
import torch
from torch import nn

from soda_tta.box import Input, Metered, ModuleBox
from soda_tta.box.wrappers.metered import Ledger
from soda_tta.errors import BoxError


@pytest.fixture
def module() -> nn.Module:
    torch.manual_seed(0)
    layers = [
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(4, 5),
    ]
    return nn.Sequential(*layers)


def test_the_response_is_the_output_of_the_module(module: nn.Module, images: np.ndarray) -> None:
    with torch.no_grad():
        expected = module.eval()((torch.from_numpy(images) - 0.5) / 0.25).softmax(1).numpy()
    box = ModuleBox(module, logits=True, input=Input(mean=(0.5,), std=(0.25,)), batch=16)
    np.testing.assert_allclose(box(images), expected, atol=1e-6)


def test_the_module_is_queried_in_evaluation_mode_even_after_training(module, images) -> None:
    box = ModuleBox(module.train(), logits=True)
    statistics = module[1].running_mean.clone()
    first = box(images)
    module.train()
    # dropout and batch statistics would change the output
    np.testing.assert_array_equal(box(images), first)
    assert torch.equal(module[1].running_mean, statistics)


def test_large_images_are_sent_a_few_at_a_time_unless_a_batch_is_stated(
    module: nn.Module, monkeypatch
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    sizes: list[int] = []
    module.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    for pixels, batch, expected in ((32, None, [32, 8]), (224, None, [3, 2]), (224, 5, [5])):
        images = np.random.default_rng(0).random((sum(expected), 3, pixels, pixels), np.float32)
        sizes.clear()
        probabilities = ModuleBox(module, logits=True, batch=batch)(images)
        assert sizes == expected
        np.testing.assert_allclose(
            probabilities, ModuleBox(module, logits=True, batch=40)(images), atol=1e-6
        )


@pytest.mark.parametrize(
    "wrong", [lambda rows: rows.sum(), lambda rows: rows[:1], lambda rows: rows[0]]
)
def test_missing_rows_are_refused(module: nn.Module, images: np.ndarray, wrong) -> None:
    class Wrong(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return wrong(module(x))

    with pytest.raises(BoxError, match="must return one row per image"):
        ModuleBox(Wrong(), logits=True)(images[:7])


def test_a_query_leaves_no_gradients(module: nn.Module, images: np.ndarray) -> None:
    modes = []
    module.register_forward_hook(
        lambda *_: modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
    )
    ModuleBox(module, logits=True)(images[:2])
    assert modes == [(False, True)]
    assert all(parameter.grad is None for parameter in module.parameters())


def test_the_module_gives_gradients_after_a_query(module, images) -> None:
    box = ModuleBox(module, logits=True)
    box(images[:2])
    box.module(torch.from_numpy(images[:2])).sum().backward()
    assert module[5].weight.grad is not None


def test_the_module_is_available_through_wrappers(module: nn.Module) -> None:
    box = ModuleBox(module)
    assert box.module is module
    assert Metered(box, Ledger(), "probe").module is module


def test_a_module_that_works_in_place_does_not_change_our_images(images: np.ndarray) -> None:
    kept = images.copy()
    ModuleBox(nn.Sequential(nn.Hardtanh(0.4, 0.6, inplace=True), nn.Flatten()), logits=True)(images)
    np.testing.assert_array_equal(images, kept)


def test_half_precision_output_is_read(images: np.ndarray) -> None:
    class Half(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return images.mean((2, 3)).softmax(1).bfloat16()

    np.testing.assert_allclose(ModuleBox(Half())(images).sum(1), 1, atol=1e-2)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Linear(7, 2), "the module raised RuntimeError: "),
        (nn.LSTM(8, 2), "the module raised"),
        (
            nn.MaxPool2d(2, return_indices=True),
            "the module returned tuple; wrap it so that it returns one tensor",
        ),
        (nn.Identity(), r"shape \(50, 3, 8, 8\)"),
    ],
)
def test_a_module_that_is_not_a_classifier_is_a_box_error(
    module: nn.Module, message: str, images: np.ndarray
) -> None:
    with pytest.raises(BoxError, match=message):
        ModuleBox(module, batch=64)(images)


def test_the_fingerprint_changes_with_one_weight_and_only_then(module: nn.Module) -> None:
    box = ModuleBox(module)
    first = box.fingerprint()
    assert first.startswith("torch:sha256:") and first == box.fingerprint()
    with torch.no_grad():
        module[5].bias[0] += 1e-3
    assert box.fingerprint() != first


def test_weights_of_half_precision_have_a_fingerprint(module: nn.Module) -> None:
    assert ModuleBox(module.bfloat16()).fingerprint().startswith("torch:sha256:")
