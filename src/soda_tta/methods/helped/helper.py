"""A helper: a local network for the same classes, whose answers and gradients cost no query."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from soda_tta.box import ModuleBox
from soda_tta.box.backends.torch_module import prepared_tensor
from soda_tta.devices import CPU, as_array, as_tensor, device_of
from soda_tta.errors import MethodError, SodaError
from soda_tta.types import Array
from soda_tta.user_code import load_object, source_digest

MEANING = (
    "a local network for the same classes: one of the zoo, file.py:name, or a module from Python"
)
PIECE = 64  # images per pass without gradients
SUM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Helper:
    """A local network. It is never changed: `copied` gives one that may be.

    Parameters
    ----------
    box : the network, with the images it expects and whether it returns logits.
    name : as the user gave it; None for an object from Python.
    """

    box: ModuleBox
    name: str | None = None

    def copied(self) -> Helper:
        """The same with weights of its own."""
        module = copy.deepcopy(self.box.module)
        return replace(self, box=ModuleBox(module, input=self.box.input, logits=self.box.logits))

    def probabilities(self, images: Any) -> Any:
        """Probabilities of a tensor of images in [0, 1], with gradients, in whichever mode.

        Tensors outside are on the CPU, wherever the network is.
        """
        import torch

        output = self.output(images)
        return torch.softmax(output, dim=1) if self.box.logits else output

    def output(self, images: Any) -> Any:
        """What the network itself returns."""
        import torch

        images = images.to(device_of(self.box.module))
        view = self.box.input.view
        if view is not None and view.size != tuple(images.shape[2:]):
            resized = torch.nn.functional.interpolate(
                images, view.size, mode="bilinear", antialias=True
            )
            images = resized.clamp(0, 1)
        return self.box.module(prepared_tensor(self.box.input, images)).cpu()

    def answers(self, images: Array) -> Array:
        """Probabilities as the network was trained to give them: in evaluation mode."""
        import torch

        self.box.module.eval()
        with torch.inference_mode():
            pieces = [
                as_array(self.probabilities(as_tensor(np.ascontiguousarray(piece), CPU)))
                for piece in np.array_split(images, max(1, -(-len(images) // PIECE)))
            ]
        return np.concatenate(pieces).astype(np.float32)

    def raw(self, images: Array) -> Array:
        """What the network itself returns, in evaluation mode."""
        import torch

        self.box.module.eval()
        with torch.inference_mode():
            return as_array(self.output(as_tensor(np.ascontiguousarray(images), CPU)))

    def check(self, images: Array, classes: int | None = None) -> None:
        """Raise MethodError unless it takes these images and knows so many classes."""
        try:
            rows = self.answers(images[:2])
            output = self.raw(images[:2])
        except SodaError:
            raise
        except Exception as error:  # the user's network may raise anything
            raise MethodError(f"the helper does not take these images: {error}") from error
        if self.box.logits and output.min() >= 0 and np.allclose(output.sum(axis=1), 1, atol=1e-3):
            raise MethodError(
                "the helper returns probabilities where logits are expected; give the box that "
                "load_box makes of it, which takes them as they are."
            )
        if rows.ndim != 2 or np.abs(rows.sum(axis=1) - 1).max() > SUM_TOLERANCE or rows.min() < 0:
            raise MethodError(
                "the helper returns no probabilities; give the module itself if it returns logits, "
                "or a box that load_box makes of it."
            )
        if classes is not None and rows.shape[1] != classes:
            raise MethodError(
                f"the helper knows {rows.shape[1]:,} classes and the model {classes:,}; "
                "give one for the same classes, in the same order."
            )

    def card(self) -> dict[str, Any]:
        """Everything that decides its answers, as plain JSON."""
        code = None if self.name is None else source_digest(self.name) or None
        return {
            "name": self.name or type(self.box.module).__name__,
            "fingerprint": self.box.fingerprint(),
            "input": self.box.input.card(),
            "logits": self.box.logits,
            "code": code,
        }


def check_name(helper: Any, method: str) -> None:
    """Refuse no helper, and a name that is not one. Nothing is loaded."""
    from soda_tta import zoo

    if helper is None:
        raise MethodError(
            f"{method} needs a helper, {MEANING}: give helper=, such as helper='cifar10_resnet32'."
        )
    if isinstance(helper, str) and helper not in zoo.ENTRIES and ":" not in helper:
        raise MethodError(
            f"there is no helper {helper!r}; choose one of {', '.join(zoo.ENTRIES)}, or your own "
            "as file.py:name."
        )


def find_helper(helper: Any, method: str) -> Helper:
    """The helper that a setting names.

    Parameters
    ----------
    helper : a name of the zoo; "file.py:name" or "package.module:name" of a module, of a box made
        with `load_box(module, ...)`, or of a function that returns either; or such an object. A
        bare module takes RGB images in [0, 1] and returns logits; `load_box` can state otherwise.
    method : what needs it, for the message.
    """
    import torch

    from soda_tta import zoo

    check_name(helper, method)
    name = helper if isinstance(helper, str) else None
    if name in zoo.ENTRIES:
        box = zoo.deployed(name, "module")
        assert isinstance(box, ModuleBox)
        # Twice as fast on a CPU; a network of the user's may depend on its own layout.
        box.module.to(memory_format=torch.channels_last)
        return Helper(box, name)
    if name is not None:
        helper = load_object(name, error_class=MethodError)
    if not isinstance(helper, torch.nn.Module | ModuleBox) and callable(helper):
        try:
            helper = helper()
        except Exception as error:  # the user's code may raise anything
            raise MethodError(
                f"the helper was called without arguments to make a network, and raised "
                f"{type(error).__name__}: {error}"
            ) from error
    if isinstance(helper, torch.nn.Module):
        helper = ModuleBox(helper, logits=True)
    if not isinstance(helper, ModuleBox):
        raise MethodError(
            f"the helper is {type(helper).__name__}; it must be a PyTorch module, because its "
            "gradients or its weights are needed."
        )
    return Helper(helper, name)


def described(helper: Any) -> Any:
    """A helper as a setting on a card: a name as it is, an object by its kind and weights."""
    if helper is None or isinstance(helper, str):
        return helper
    module = helper.module if isinstance(helper, ModuleBox) else helper
    if not hasattr(module, "state_dict") or isinstance(module, type):
        return f"made by {getattr(module, '__qualname__', type(module).__name__)}"
    digest = hashlib.sha256(ModuleBox(module).fingerprint().encode()).hexdigest()[:12]
    return f"{type(module).__name__}, weights {digest}, given"
