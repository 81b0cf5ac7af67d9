"""A box from a PyTorch module: the only kind that also gives gradients."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import numpy as np

from soda_tta.box.backends.backend import Backend
from soda_tta.box.input import Input
from soda_tta.box.view import QUARTER
from soda_tta.devices import (
    CPU,
    as_array,
    as_tensor,
    default_device,
    device_of,
    find_device,
    working_on,
)
from soda_tta.errors import BoxError
from soda_tta.types import Array

# 32 images of 32 px, 2 of 224 px: so few that the activations stay in fast memory.
FLOATS_PER_CALL = 3 * 2**15


class ModuleBox(Backend):
    """Query a PyTorch module in evaluation mode, without gradients.

    White-box methods use `.module` and `differentiable`.

    Parameters
    ----------
    module : torch.nn.Module
        Takes a tensor of prepared images and returns one of shape (n, classes).
    input : Input, optional
        The images the module expects. Default: float32 NCHW RGB in [0, 1].
    logits : bool, default False
        The module returns logits instead of probabilities.
    batch : int, optional
        Images per call of the module. Default: 2 to 32, as many as make up `FLOATS_PER_CALL`,
        and at least one per thread.
    device : str, optional
        The module is moved there: "cuda", "mps" or "cpu". Default: that of `using_device`, and
        otherwise it stays where it is.

    Examples
    --------
    >>> import torch
    >>> module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5))
    >>> ModuleBox(module, logits=True)(np.zeros((2, 3, 4, 4), np.float32)).shape
    (2, 5)
    """

    def __init__(
        self,
        module: Any,
        *,
        input: Input | None = None,
        logits: bool = False,
        batch: int | None = None,
        device: str | None = None,
    ) -> None:
        if device is None and default_device() != CPU:
            device = default_device()
        self._module = module.eval()
        if device is not None:
            self._module = self._module.to(find_device(device))
        self.input = input or Input()
        self.logits = logits
        self.batch = batch or 32
        self.images_per_call = batch

    @classmethod
    def takes(cls, model: Any) -> bool:
        torch = sys.modules.get("torch")  # without it imported, `model` cannot be a module
        return torch is not None and isinstance(model, torch.nn.Module)

    @property
    def module(self) -> Any:
        return self._module

    def answer(self, images: Array) -> Array:
        import torch

        self._module.eval()  # a white-box method may have left it in training mode
        device = device_of(self._module)
        with torch.inference_mode(), working_on(device):
            prepared = as_tensor(self.input.prepare(images), device)
            per_call = self.images_per_call or max(
                2, torch.get_num_threads(), FLOATS_PER_CALL // prepared[0].numel()
            )
            # rounded down, so that the last piece is not a single image
            pieces = torch.tensor_split(prepared, max(1, len(prepared) // per_call))
            return np.concatenate([self._call(piece) for piece in pieces])

    def _call(self, images: Any) -> Array:
        import torch

        try:
            output = self._module(images)
        except Exception as error:
            raise BoxError(f"the module raised {type(error).__name__}: {error}") from error
        if not isinstance(output, torch.Tensor):
            raise BoxError(
                f"the module returned {type(output).__name__}; "
                "wrap it so that it returns one tensor."
            )
        if output.ndim == 0 or len(output) != len(images):
            raise BoxError(
                f"the module returned {tuple(output.shape)} for {len(images)} images; "
                "it must return one row per image."
            )
        return as_array(output.float())

    def differentiable(self, images: Any) -> Any:
        """Probabilities of a tensor of images, with gradients, for white-box methods."""
        import torch

        images = images.to(device_of(self._module))
        output = self._module(prepared_tensor(self.input, images))
        output = torch.softmax(output, dim=1) if self.logits else output
        if not self.background:
            return output
        return output[:, 1:] / output[:, 1:].sum(dim=1, keepdim=True)

    def fingerprint(self) -> str:
        import torch

        digest = hashlib.sha256()
        for name, tensor in sorted(self._module.state_dict().items()):
            digest.update(name.encode())
            raw = tensor.detach().reshape(-1).view(torch.uint8)  # numpy has no bfloat16
            digest.update(as_array(raw).tobytes())
        return f"torch:sha256:{digest.hexdigest()}"

    def __repr__(self) -> str:
        return f"ModuleBox({type(self._module).__name__})"


def prepared_tensor(facts: Input, images: Any) -> Any:
    """What `Input.prepare` does, for a tensor and with gradients.

    Parameters
    ----------
    facts : Input
        RGB or BGR, float32, and of the size of the images: the other conversions have no gradient.
    images : torch.Tensor of shape (n, 3, height, width)
        float32 RGB in [0, 1].
    """
    import torch

    same_size = facts.view is None or facts.view.size == tuple(images.shape[2:])
    if facts.channels == "L" or facts.dtype != "float32" or not same_size:
        raise BoxError(
            "gradients need RGB or BGR float32 images of the model's own size; "
            f"the model takes {facts}."
        )
    images = torch.rot90(images, -(facts.turn // QUARTER), dims=(2, 3))
    if facts.mirror:
        images = images.flip(3)
    if facts.channels == "BGR":
        images = images.flip(1)
    mean = torch.tensor(facts.mean, device=images.device).view(1, 3, 1, 1)
    std = torch.tensor(facts.std, device=images.device).view(1, 3, 1, 1)
    images = (images * facts.pixel_range - mean) / std
    return images if facts.layout == "NCHW" else images.permute(0, 2, 3, 1)
