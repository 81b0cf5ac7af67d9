"""Options that say where many tasks run."""

from __future__ import annotations

import argparse

from soda_tta.cli.options import at_least_one


def add_engine(group: argparse.ArgumentParser | argparse._ArgumentGroup, jobs: str) -> None:
    """Add --backend, --address and --jobs; `jobs` is what happens without --jobs."""
    group.add_argument(
        "--backend",
        choices=["local", "dask", "ray"],
        default="local",
        help="where the work is done: on this machine, or on the workers of Dask or Ray "
        "(default: local)",
    )
    group.add_argument(
        "--address",
        metavar="ADDRESS",
        help="of a cluster: tcp://host:8786 for Dask, host:6379 for Ray (default: one that is "
        "started on this machine)",
    )
    group.add_argument(
        "--jobs",
        type=at_least_one,
        metavar="N",
        help=f"number of processes on this machine, with one thread each (default: {jobs})",
    )
