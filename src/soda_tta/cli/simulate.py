"""Send images whose condition comes, goes and returns to a running proxy, and measure it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from soda_tta.cli.image_options import add_images, reading_of
from soda_tta.cli.model_options import add_facts, add_remote, model_options
from soda_tta.cli.options import add_json, at_least_one
from soda_tta.errors import BoxError, SodaError

if TYPE_CHECKING:
    from soda_tta.data.dataset import Dataset
    from soda_tta.serve.simulation import Simulation, Window

EXAMPLES = """\
examples:
  soda-tta simulate --proxy http://127.0.0.1:9000/v2/models/NAME --images cifar10 \\
      --shifts clean:500,gaussian_noise:1000,clean:500,fog+clean:500 \\
      --direct http://127.0.0.1:8000/v2/models/NAME --page live.html

A condition is 'clean' or one of the 19 corruptions of 'soda-tta corrupt'; + mixes them. Without
labels (a plain folder), the share of changed answers is shown in place of the accuracy.
Ctrl-C ends the simulation and shows what was measured.
"""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "simulate",
        help="send images that drift to a running proxy, and measure it",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_traffic(parser)
    add_images(parser)
    parser.add_argument(
        "--split", default="test", choices=["test", "train"], help="for data sets that have both"
    )
    parser.add_argument("--domain", metavar="NAME", help="for data sets that have domains")
    parser.add_argument(
        "--classes", metavar="FILE", help="class names in the order of the model, one per line"
    )
    add_facts(parser.add_argument_group("the model"))
    add_remote(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def add_traffic(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is sent where."""
    group = parser.add_argument_group("the traffic")
    group.add_argument(
        "--proxy", required=True, metavar="URL", help="the model as 'soda-tta serve' announces it"
    )
    group.add_argument(
        "--direct", metavar="URL", help="also query the model itself, for comparison"
    )
    group.add_argument(
        "--direct-api-key-env",
        metavar="VAR",
        help="environment variable with the API key of the model itself (--api-key-env is for "
        "the proxy)",
    )
    group.add_argument(
        "--shifts",
        metavar="LIST",
        help="the schedule, CONDITION:IMAGES separated by commas (default: all images, clean)",
    )
    group.add_argument(
        "--severity", type=int, default=5, metavar="N", help="of corruptions, 1 to 5 (default: 5)"
    )
    group.add_argument(
        "--rate",
        type=float,
        default=100.0,
        metavar="N",
        help="images per second, at most (default: 100; 0: as fast as they are answered)",
    )
    group.add_argument(
        "--batch", type=at_least_one, default=1, metavar="N", help="images per request (default: 1)"
    )
    group.add_argument(
        "--window",
        type=at_least_one,
        default=250,
        metavar="N",
        help="images per measured accuracy (default: 250)",
    )
    group.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of order and corruptions (default: 0)"
    )
    group.add_argument("--page", metavar="FILE", help="write a page with the curve")


def run(options: argparse.Namespace) -> int:
    """Send the images and print what was measured."""
    from soda_tta.cli.bar import Bar
    from soda_tta.cli.interrupt import Interrupt

    if options.page:
        require_report()
    simulation = simulation_from(options)
    failure: BoxError | None = None
    with Interrupt() as stop, Bar("sending", simulation.total, quiet=options.json) as bar:
        try:
            simulation.run(stop=stop, advance=bar.advance)
        except BoxError as error:
            if not simulation.sent:
                raise
            failure = error  # what was measured until then is shown first
    show(options, simulation)  # before the page, which may fail
    if options.page:
        from soda_tta.report.simulation_page import write_simulation_page

        write_simulation_page(simulation, options.page, options.window, options.images)
    if failure is not None:
        raise failure
    return 130 if simulation.sent < simulation.total else 0


def require_report() -> None:
    """Fails before anything is sent if no page can be drawn."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise SodaError("the page needs matplotlib: pip install 'soda-tta[report]'.") from error


def show(options: argparse.Namespace, simulation: Simulation) -> None:
    """Print what was measured."""
    if options.json:
        places = {"proxy": options.proxy, "direct": options.direct, "page": options.page}
        print(json.dumps({**places, **simulation.summary(options.window)}))
        return
    print("\n".join(lines(simulation.windows(options.window))))
    part = "" if simulation.sent == simulation.total else f" of {simulation.total:,}"
    print(f"{simulation.sent:,}{part} images in {simulation.seconds:.1f} s.")
    if options.page:
        print(f"page: {options.page}")


def simulation_from(options: argparse.Namespace) -> Simulation:
    """The simulation that the options describe."""
    from soda_tta.box import load_box
    from soda_tta.data import load_dataset
    from soda_tta.data.corruption_names import CORRUPTIONS
    from soda_tta.report.labels import read_classes
    from soda_tta.serve.simulation import CLEAN, Phase, Simulation, parse_shifts

    phases = options.shifts and parse_shifts(options.shifts, (CLEAN, *CORRUPTIONS))
    facts = model_options(options)
    proxy = load_box(options.proxy, **facts)
    direct = None
    if options.direct:
        own = {"api_key_env": options.direct_api_key_env}
        direct = load_box(options.direct, **{**facts, **own})
    dataset = load_dataset(
        options.images,
        split=options.split,
        domain=options.domain,
        size=options.size,
        classes=read_classes(options.classes) if options.classes else None,
        **reading_of(options),
    )
    phases = phases or (Phase((CLEAN,), len(dataset)),)
    names = {name for phase in phases for name in phase.conditions}
    if options.rate < 0:
        raise SodaError(f"--rate {options.rate:g} is not valid; give 0 or more.")
    return Simulation(
        {name: under(dataset, name, options, proxy.input.view) for name in sorted(names)},
        phases,
        proxy,
        direct,
        labels=dataset.labels,
        rate=options.rate or None,
        batch=options.batch,
        seed=options.seed,
    )


def under(dataset: Dataset, name: str, options: argparse.Namespace, view: Any) -> Any:
    """The images under one condition, in the size of the model."""
    from soda_tta.engine.working_size import at_working_size
    from soda_tta.serve.simulation import CLEAN

    if name == CLEAN:
        return at_working_size(dataset, view)
    from soda_tta.data.corrupted import Corrupted  # imports scipy

    return at_working_size(Corrupted(dataset, name, options.severity, options.seed), view)


def lines(windows: list[Window]) -> list[str]:
    """A table: one line per window, only with the columns that were measured."""
    columns = {
        "directly": [each.direct for each in windows],
        "proxy": [each.proxy for each in windows],
        "changed": [each.changed for each in windows],
    }
    known = {name: shares for name, shares in columns.items() if shares and shares[0] is not None}
    width = max([len(each.condition) for each in windows] + [9])
    table = [f"{'images':>15}  {'condition':<{width}}" + "".join(f"{n:>10}" for n in known)]
    for place, each in enumerate(windows):
        span = f"{each.start + 1:,}-{each.start + each.images:,}"
        shares = "".join(f"{column[place]:>10.1%}" for column in known.values())
        table.append(f"{span:>15}  {each.condition:<{width}}{shares}")
    return table
