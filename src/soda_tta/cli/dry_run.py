"""What `soda-tta adapt --dry-run` prints: the queries and the cost of a run."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from soda_tta.cli.display import money, table
from soda_tta.cli.image_options import clean_from
from soda_tta.cli.model_options import model_from

if TYPE_CHECKING:
    from soda_tta.box.price import Price
    from soda_tta.data import Images
    from soda_tta.engine.plan import Plan
    from soda_tta.methods import Method


def dry_run(options: argparse.Namespace, method: Method, images: Images) -> int:
    """Print what the run would cost. The model is loaded, but no query is sent."""
    from soda_tta.engine.adapt import check_call
    from soda_tta.engine.clean import open_clean
    from soda_tta.engine.convention import most_queries
    from soda_tta.engine.groups import make_groups, make_kinds
    from soda_tta.engine.plan import plan_run
    from soda_tta.engine.working_size import at_working_size

    clean = open_clean(clean_from(options), options.clean_accuracy, options.seed)
    box = model_from(options, auto=options.input == "auto")
    aside = {
        "clean": 0 if clean is None else len(clean.images),
        "convention": most_queries(box),
    }
    make_groups(images, options.group_by, method)  # refuse what the run would refuse
    make_kinds(images, options.condition_by, method)
    answers = "none" if options.answers == "none" else "all"
    plan = plan_run(method, len(images), options.budget, aside, answers)
    check_call(method, at_working_size(images, box.input.view), box, options.seed)
    price = options.price or box.price
    calls = box.requests(plan.total)
    if options.json:
        facts = plan_facts(plan, method, price, calls)
        if options.sampled is not None:
            facts["sample"] = images.sample
        print(json.dumps(facts))
        return 0
    parts = [f"{purpose} {queries:,}" for purpose, queries in plan.queries.items()]
    print(f"{method.name} would send at most {plan.total:,} queries; none was sent.")
    rows = [
        ("images", f"{plan.images:,}"),
        ("plan", method.outline(plan)),
        ("queries", ", ".join(parts)),
        ("per image", f"{plan.queries_per_image:.2f}{money(price, plan.total, calls=calls)}"),
    ]
    if options.sampled is not None and options.answers == "all":
        count = (images.sample or {}).get("of")
        everything = f"{count:,} queries" if count is not None else "one query per image"
        rows.append(("answers", f"then {everything} for all of {options.images}"))
    print(table(rows))
    return 0


def plan_facts(plan: Plan, method: Method, price: Price | None, calls: int) -> dict[str, Any]:
    """A plan as JSON; the cost is null if the price is per hour."""
    facts = {
        **asdict(plan),
        "total": plan.total,
        "method": method.name,
        "settings": method.settings,
        "queries_per_image": plan.queries_per_image,
    }
    if price is not None:
        facts |= {"price": price.number, "cost": price.cost(plan.total, calls=calls)}
    return facts
