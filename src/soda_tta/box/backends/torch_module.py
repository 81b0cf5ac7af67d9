"""A box from a PyTorch module: the one kind that also shows its inside."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from soda_tta.box.box import Box
from soda_tta.box.facts import Input
from soda_tta.errors import BoxError
from soda_tta.types import Array

FLOATS = (
    3 * 2**15
)  # 32 images of 32 px, 2 of 224 px: what lies between the layers stays in memory that is at hand


def prepared_tensor(facts: Input, images: Any) -> Any:
    """What `Input.prepare` does to an array, to a tensor and with gradients; for images of the model's own size."""
    import torch

    if (
        facts.channels == "L"
        or facts.dtype != "float32"
        or facts.size not in (None, tuple(images.shape[2:]))
    ):
        raise BoxError(
            f"gradients need RGB or BGR float32 images of the model's own size; it takes {facts}."
        )
    if facts.channels == "BGR":
        images = images.flip(1)
    mean, std = (torch.tensor(each).view(1, 3, 1, 1) for each in (facts.mean, facts.std))
    images = (images * facts.pixel_range - mean) / std
    return images if facts.layout == "NCHW" else images.permute(0, 2, 3, 1)


class ModuleBox(Box):
    """Ask a PyTorch module in evaluation mode, without gradients. `.module` is there for white-box methods.

    `batch`: images a call of the module; without it as many as make up `FLOATS`, 2 to 32, and one a thread if there are
    more threads than that.
    """

    def __init__(
        self,
        module: Any,
        *,
        input: Input | None = None,
        logits: bool = False,
        batch: int | None = None,
    ) -> None:
        self._module, self.input, self.logits = module.eval(), input or Input(), logits
        self.batch, self.told = batch or 32, batch

    @property
    def module(self) -> Any:
        return self._module

    def answer(self, images: Array) -> Array:
        import torch

        self._module.eval()  # a white-box method may have left it in training mode
        with torch.inference_mode():
            prepared = torch.from_numpy(self.input.prepare(images))
            fitting = self.told or max(2, torch.get_num_threads(), FLOATS // prepared[0].numel())
            pieces = torch.tensor_split(
                prepared, max(1, len(prepared) // fitting)
            )  # no last one of a single image
            return np.concatenate([self._ask(piece) for piece in pieces])

    def _ask(self, images: Any) -> Array:
        import torch

        try:
            output = self._module(images)
        except Exception as error:
            raise BoxError(f"the module raised {type(error).__name__}: {error}") from error
        if not isinstance(output, torch.Tensor):
            raise BoxError(
                f"the module returned {type(output).__name__}; wrap it so that it returns one tensor."
            )
        if output.ndim == 0 or len(output) != len(images):
            shape = tuple(output.shape)
            raise BoxError(
                f"the module returned {shape} for {len(images)} images; it must return a row for each."
            )
        return output.float().numpy()

    def differentiable(self, images: Any) -> Any:
        """Probabilities of a tensor of images, with gradients: the way in for white-box methods."""
        import torch

        output = self._module(prepared_tensor(self.input, images))
        return torch.softmax(output, dim=1) if self.logits else output

    def fingerprint(self) -> str:
        import torch

        digest = hashlib.sha256()
        for name, tensor in sorted(self._module.state_dict().items()):
            digest.update(name.encode())
            raw = tensor.detach().cpu().reshape(-1).view(torch.uint8)  # numpy knows no bfloat16
            digest.update(raw.numpy().tobytes())
        return f"torch:sha256:{digest.hexdigest()}"

    def __repr__(self) -> str:
        return f"ModuleBox({type(self._module).__name__})"
