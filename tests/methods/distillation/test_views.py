"""The random views of the images that the students are trained on."""

import numpy as np
import torch

from soda_tta.methods.distillation.views import OPERATIONS, cutout, strong, weak


def test_views_are_images_and_follow_the_generator(toy) -> None:
    images = torch.from_numpy(toy.coloured(40)[0])
    for view in (weak, strong):
        first, second = (view(images, np.random.default_rng(2)) for _ in range(2))
        assert first.shape == images.shape
        assert float(first.min()) >= 0
        assert float(first.max()) <= 1
        assert torch.equal(first, second)
        assert not torch.equal(first, images)


def test_a_weak_view_is_a_shifted_and_possibly_mirrored_image() -> None:
    image = torch.arange(64.0).view(1, 1, 8, 8).repeat(1, 3, 1, 1) + 1
    padded = torch.nn.functional.pad(image, (1, 1, 1, 1))
    shifts = [padded[:, :, r : r + 8, c : c + 8] for r in range(3) for c in range(3)]
    possible = [*shifts, *(shift.flip(3) for shift in shifts)]
    for seed in range(20):
        view = weak(image, np.random.default_rng(seed))
        assert any(torch.equal(view, other) for other in possible)


def test_strength_zero_changes_nothing_and_every_operation_stays_finite(toy) -> None:
    images = torch.from_numpy(toy.coloured(6)[0])
    for operation in OPERATIONS:
        unchanged = operation(images, torch.zeros(6, 1, 1, 1))
        if operation.__name__ not in ("stretch", "posterise"):
            torch.testing.assert_close(unchanged, images, atol=1e-5, rtol=0)
        assert operation(images * 0, torch.ones(6, 1, 1, 1)).isfinite().all()


def test_a_hole_is_at_most_a_quarter_of_the_image() -> None:
    holes = cutout(torch.zeros(50, 3, 12, 12), np.random.default_rng(0))
    shares = (holes == 0.5).float().mean(dim=(1, 2, 3))
    assert float(shares.min()) > 0
    assert float(shares.max()) <= 0.25
