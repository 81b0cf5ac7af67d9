"""What methods with a helper share: the setting, its card, and a run without a first pass."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from soda_tta.data import Images
from soda_tta.methods.helped.helper import MEANING, Helper, check_name, described, find_helper
from soda_tta.methods.method import DESCRIPTION, Method


@dataclass(frozen=True, kw_only=True)
class Helped(Method):
    """A method with a helper."""

    helper: Any = field(default=None, repr=False, metadata={"meaning": MEANING})

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting; a helper from Python as a description of it."""
        names = [each.name for each in fields(self) if each.name not in DESCRIPTION]
        settings = {name: getattr(self, name) for name in names}
        return {**settings, "helper": described(self.helper)}

    def found_helper(self) -> Helper:
        """The helper itself."""
        return find_helper(self.helper, self.name)

    def knowledge(self) -> dict[str, Any] | None:
        """The card of the helper."""
        return None if self.helper is None else self.found_helper().card()

    def check(self, images: Images | None = None) -> None:
        """Refuse a helper that cannot be used; without images, one that does not exist."""
        check_name(self.helper, self.name)
        if images is not None:
            self.found_helper().check(images[slice(0, 2)])
