"""`adapt --sample N --answers all`: every image of the archive, once it has been learned."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

FOLDER = "answers"  # below the run, for archives
FILE = "answers.csv"  # below the run, for arrays and data sets


def answer_all(options: argparse.Namespace) -> dict[str, Any]:
    """Answer all of --images with the adaptor of the run in --out; continue what was interrupted.

    An archive is answered shard by shard into a folder below the run; what cannot be listed, such
    as an .npy file, into one CSV.
    """
    from soda_tta.data.sampling import archive_of

    archive = archive_of(options.images)
    return in_one_file(options) if archive is None else in_shards(options, archive)


def in_shards(options: argparse.Namespace, archive: str) -> dict[str, Any]:
    """Answer an archive, as `soda-tta apply` does."""
    from soda_tta.cli.apply_archive import answered
    from soda_tta.scale.manifest import MANIFEST

    out = Path(options.out, FOLDER)
    begun = (out / MANIFEST).exists()
    here = {"backend": "local", "address": None, "jobs": None}
    columns = {"all_probabilities": False, "shard_size": None}
    what = {"adaptor": options.out, "images": archive, "out": f"{out}/", "resume": begun}
    summary = answered(argparse.Namespace(**{**vars(options), **here, **columns, **what}))
    return {"out": f"{out}/", **asdict(summary)}


def in_one_file(options: argparse.Namespace) -> dict[str, Any]:
    """Answer images that are opened as a whole."""
    from soda_tta.cli.display import Display
    from soda_tta.cli.image_options import reading_of
    from soda_tta.cli.interrupt import Interrupt
    from soda_tta.cli.model_options import model_options
    from soda_tta.data import open_images
    from soda_tta.engine.apply import apply

    out = Path(options.out, FILE)
    images = open_images(options.images, options.size, **reading_of(options))
    begun = any(out.parent.glob(f"{out.name}.*.partial"))
    with Interrupt() as interrupt, Display(quiet=options.json) as display:
        answers = apply(
            options.out,
            images,
            options.model,
            out=out,
            resume=begun,
            force=True,
            stop=interrupt,
            listener=display,
            **model_options(options),
        )
    if answers.interrupted:
        raise KeyboardInterrupt("What was answered is kept; continue with --resume.")
    count = len(answers.names)
    return {"out": str(out), "images": count, "errors": 0, "queries": answers.ledger.total}
