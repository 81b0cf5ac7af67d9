"""Options about answers: the class prior, and views."""

from __future__ import annotations

import argparse
from typing import Any

from soda_tta.errors import MethodError


def add_answers(group: Any) -> None:
    """Add --prior, --prior-from and --views to an argument group."""
    group.add_argument(
        "--prior",
        metavar="SHARES",
        help="how frequent the classes are, if you know it: balanced, shares such as 0.7,0.2,0.1 "
        "(one per class), or a file of them; answers are matched to it (default: unknown)",
    )
    group.add_argument(
        "--prior-from",
        metavar="RUN",
        help="the same, from the answers of a run on images from before the shift",
    )
    group.add_argument(
        "--views",
        metavar="V",
        help="answer with the mean over V views: 2 adds the mirror image, if the model recognises "
        "it as well, for one more query per image; 3 a shifted image; auto: 2 where the budget "
        "has room (default: 1)",
    )


def answer_settings(options: argparse.Namespace) -> dict[str, str]:
    """The settings of a method that these options state."""
    settings = {
        name: getattr(options, name)
        for name in ("prior", "views")
        if getattr(options, name) is not None
    }
    if options.prior_from is None:
        return settings
    if options.prior is not None:
        raise MethodError("--prior and --prior-from state the same; give one of them.")
    from soda_tta.engine.stated_prior import prior_from

    return {**settings, "prior": prior_from(options.prior_from)}
