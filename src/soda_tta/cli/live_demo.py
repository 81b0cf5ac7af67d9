"""`soda-tta demo --live`: a proxy in front of a model learns from traffic that drifts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from soda_tta.cli.bar import Bar
from soda_tta.cli.interrupt import Interrupt, stopped_like_ctrl_c
from soda_tta.cli.simulate import lines, require_report
from soda_tta.errors import SodaError


def run_live(options: argparse.Namespace) -> int:
    """Run the live demo and print what was measured."""
    require_report()
    try:
        import aiohttp  # noqa: F401
    except ImportError as error:
        raise SodaError("the live demo needs aiohttp: pip install 'soda-tta[serve]'.") from error
    from soda_tta.live_demo import LEARN_BUDGET, RATE, SHIFTS, WINDOW, live_demo
    from soda_tta.report.simulation_page import write_simulation_page

    def tell(text: str) -> None:
        if not options.json:
            print(text, file=sys.stderr)

    folder = Path(options.out)
    tell("Training a small digit classifier, then serving it, with a proxy in front of it ...")
    with stopped_like_ctrl_c(), live_demo(folder, options.seed) as demo:
        simulation = demo.simulation
        tell(f"model      {demo.upstream}\nproxy      {demo.proxy}\ndashboard  {demo.dashboard}")
        tell(f"traffic    {SHIFTS}, {RATE:g} images per second; Ctrl-C ends it")
        tell(f"learner    at most {LEARN_BUDGET} queries per image that arrives (usually 2)\n")
        with Interrupt() as stop, Bar("sending", simulation.total, quiet=options.json) as bar:
            simulation.run(stop=stop, advance=bar.advance)
        learned = demo.learned()
        summary = demo.summary()
    page = write_simulation_page(simulation, folder / "live.html", WINDOW, "digits")
    if options.json:
        print(json.dumps({**summary, "page": str(page)}))
    else:
        print("\n".join(lines(simulation.windows(WINDOW))))
        print("\nThe conditions that the proxy told apart, without a label:")
        print("\n".join(f"  {words}: {does}" for words, does in learned))
        print(f"\npage: {page}; the logs are beside it. Model and proxy have ended.")
    return 130 if simulation.sent < simulation.total else 0
