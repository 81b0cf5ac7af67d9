"""The live demo: its processes, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from soda_tta import live_demo as module
from soda_tta import load_box
from soda_tta.cli import main
from soda_tta.errors import BoxError, SodaError
from soda_tta.serve.live import FixedAdaptor
from soda_tta.serve.local import LocalModel
from soda_tta.serve.upstream import HttpUpstream


def test_a_served_process_ends_with_its_block(tiny_onnx, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("SODA_TTA_CLIENT_KEY", "x" * 32)  # of the user's real proxy
    images = np.full((2, 3, 8, 8), 0.25, np.float32)
    model = str(tiny_onnx())
    with module.serving(["--model", model, "--freeze"], tmp_path / "log") as url:
        np.testing.assert_allclose(load_box(url)(images), load_box(model)(images), atol=1e-6)
    with pytest.raises(BoxError):
        load_box(url, retries=0)
    assert '"event": "stopping"' in (tmp_path / "log").read_text()


def test_a_process_that_does_not_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(SodaError, match=r"did not start: .*--absent.* See .*log"),
        module.serving(["--absent"], tmp_path / "log"),
    ):
        pass


class Knowing(FixedAdaptor):
    """Knows one condition."""

    def facts(self) -> dict[str, Any]:
        return {"sources": [{"conditions": [{"words": "pale", "adaptor": "contrast x2"}]}]}


def test_the_demo_measures_and_shows_what_was_learned(
    start, tiny_onnx, tmp_path: Path, capsys, monkeypatch
) -> None:
    @contextmanager
    def serving(options: list[str], log: Path) -> Iterator[str]:
        """In this process, without the command."""
        name, place = options[:2]
        if name == "--model":
            yield start(LocalModel(load_box(place), "tiny")).url
        else:
            assert "--mean=0.5,0.5,0.5" in options and "--learn-budget" in options
            yield start(HttpUpstream(place), Knowing(), box=load_box(place)).url

    monkeypatch.setattr(module, "serving", serving)
    monkeypatch.setattr(module, "train_and_export", lambda *_: tiny_onnx())
    short = partial(module.live_demo, shifts="clean:10,hazy:10,noisy:5", rate=None)
    monkeypatch.setattr(module, "live_demo", short)
    words = ["demo", "--live", "--out", str(tmp_path / "out")]
    assert main([*words, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["conditions"] == [{"words": "pale", "adaptor": "contrast x2"}]
    assert [each["condition"] for each in facts["phases"]] == ["clean", "hazy", "noisy"]
    assert all(each["direct"] == each["proxy"] for each in facts["windows"])
    assert main(words) == 0
    done = capsys.readouterr()
    assert "pale: contrast x2" in done.out and "dashboard  http://127.0.0.1:" in done.err
    assert "<svg" in (tmp_path / "out" / "live.html").read_text()
