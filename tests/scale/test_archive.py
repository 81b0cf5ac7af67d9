"""`apply` over an archive: every form of input, one row per image, shards that resume."""

import json
import resource
from pathlib import Path

import numpy as np
import pytest

from soda_tta import apply
from soda_tta.adaptors import Answering, Bank, Identity
from soda_tta.box import load_box
from soda_tta.data import open_images
from soda_tta.data.archives.places import Place
from soda_tta.data.decoding import decode_bytes
from soda_tta.errors import BoxError, ImageError, RunError, SodaError, StorageError
from soda_tta.scale.archive import apply_archive
from soda_tta.scale.driver import ShardsFailed

BAD = 7
FORMS = (
    *("folder", "csv", "csv of addresses", "parquet of paths", "parquet of bytes"),
    *("parquet of structs", "folder of tars", "numbered tars", "starred tars"),
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_answers(forms, form, photos, memory, model, rows) -> None:
    out = f"{memory}/answers"
    summary = apply_archive(Identity(), forms[form], model, out, shard_size=10)
    answers = rows(out)
    assert summary.images == len(photos) and summary.errors == 1 and summary.complete
    assert summary.queries == model.asked == len(photos) - 1
    names = [row["name"].removeprefix("memory://forms/folder/") for row in answers]
    assert names == list(photos)
    good = list(photos.values())
    del good[BAD]
    bad = answers.pop(BAD)
    assert bad["class"] is None and "cannot be read as an image" in bad["error"]
    assert not any(row["error"] for row in answers)
    for row, data in zip(answers, good, strict=True):
        probabilities = model(pixels_of(data))[0]
        assert row["class"] == probabilities.argmax()
        assert row["confidence"] == pytest.approx(probabilities.max(), abs=1e-5)


def pixels_of(data: bytes):
    pixels = decode_bytes(data, "x.png").pixels
    white = np.float32(np.iinfo(pixels.dtype).max)
    return pixels.transpose(2, 0, 1)[None].astype(np.float32) / white


def test_the_answers_are_those_of_apply(tmp_path, images, tiny_onnx, rows) -> None:
    """Bit for bit, with an adaptor, and images that are larger than the model takes."""
    from PIL import Image

    model = tiny_onnx(shape=("n", 3, 6, 6))
    (tmp_path / "night").mkdir()
    for number, image in enumerate(np.rint(images * 255).astype(np.uint8)):
        Image.fromarray(image.transpose(1, 2, 0)).save(tmp_path / "night" / f"{number:02}.png")
    adaptor = Bank().adaptor({"brightness": 0.3, "median": 0.5})
    answers = apply(adaptor, str(tmp_path / "night"), str(model))
    apply_archive(adaptor, tmp_path / "night", model, tmp_path / "answers", all_probabilities=True)
    written = rows(str(tmp_path / "answers"))
    assert [row["name"] for row in written] == answers.names
    assert [row["class"] for row in written] == answers.predictions.tolist()
    stored = np.array([row["probabilities"] for row in written], np.float32)
    assert np.array_equal(stored, answers.probabilities)


def test_views_and_class_weights_are_those_of_apply(folder, tmp_path, tiny_onnx, rows) -> None:
    model = tiny_onnx()
    plain = Bank().adaptor({"brightness": 0.3})
    classes = load_box(model)(np.zeros((1, 3, 8, 8), np.float32)).shape[1]
    adaptor = plain.answered(Answering(("mirror",), np.resize([0.2, 3.0], classes)))
    out = tmp_path / "answers"
    summary = apply_archive(adaptor, folder, model, out, all_probabilities=True, size=8)
    assert summary.queries == 2 * (summary.images - summary.errors)
    (folder / min(row["name"] for row in rows(str(out)) if row["error"])).unlink()
    answers = apply(adaptor, open_images(str(folder), size=8), str(model))
    written = [row["probabilities"] for row in rows(str(out)) if not row["error"]]
    np.testing.assert_allclose(np.array(written), answers.probabilities, atol=1e-6)
    with pytest.raises(RunError, match="another adaptor"):
        apply_archive(plain, folder, model, out, all_probabilities=True, size=8, resume=True)


def test_size_and_colour_are_those_of_apply(tmp_path, model, rows) -> None:
    from PIL import Image

    (tmp_path / "wide").mkdir()
    Image.new("RGBA", (40, 20), (10, 200, 30, 90)).save(tmp_path / "wide" / "1.png")
    plain = apply(Identity(), str(tmp_path / "wide"), model).confidences
    apply_archive(Identity(), tmp_path / "wide", model, tmp_path / "white")
    apply_archive(Identity(), tmp_path / "wide", model, tmp_path / "black", over="black", size=8)
    white, black = rows(str(tmp_path / "white")), rows(str(tmp_path / "black"))
    assert white[0]["confidence"] == np.float32(plain[0]) != black[0]["confidence"]


def test_a_failure_keeps_finished_shards_and_a_resume_asks_only_for_the_rest(
    forms, memory, model, contents
) -> None:
    out, whole = f"{memory}/out", f"{memory}/whole"
    apply_archive(Identity(), forms["folder"], model, whole, shard_size=5)
    model.asked = 0

    def failing(images):
        if model.asked >= 9:
            raise RuntimeError("the model is gone")
        return model(images)

    failing.__module__, failing.__qualname__ = "test", "model"  # the same model for the manifest
    with pytest.raises(BoxError, match=r"the model is gone[\s\S]*resume=True"):
        apply_archive(Identity(), forms["folder"], failing, out, shard_size=5)
    finished = contents(out)
    assert sorted(finished) == ["part-00000.parquet", "part-00001.parquet"]
    assert not json.loads(Place(out).read("_summary.json"))["complete"]
    asked = model.asked
    with pytest.raises(RunError, match="are of another model"):
        apply_archive(Identity(), forms["folder"], model, out, shard_size=5, resume=True)
    assert model.asked == asked


def test_stop_and_resume(folder, tmp_path, model, contents) -> None:
    out, whole = str(tmp_path / "out"), str(tmp_path / "whole")
    apply_archive(Identity(), folder, model, whole, shard_size=5)
    model.asked = 0
    how = {"adaptor": Identity(), "images": folder, "box": model, "out": out, "shard_size": 5}
    summary = apply_archive(**how, stop=lambda: model.asked > 12)
    assert not summary.complete
    assert 0 < summary.finished < summary.shards
    kept = contents(out)
    (folder / "c" / "0-new.png").write_bytes(b"arrived meanwhile")
    model.asked = 0
    done: list[tuple[int, int]] = []
    summary = apply_archive(**how, resume=True, progress=lambda *counts: done.append(counts))
    assert summary.complete and summary.images == 23 and summary.errors == 1
    assert done[0] == (len(kept), 5) and done[-1] == (5, 5)
    assert contents(out) == contents(whole)
    in_kept_shards = 5 * len(kept) - (len(kept) > BAD // 5)
    assert model.asked == 22 - in_kept_shards  # finished shards are not asked again
    assert apply_archive(**how, resume=True).complete
    assert model.asked == 22 - in_kept_shards


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"adaptor": Bank().adaptor({"brightness": 0.1})}, "adaptor"),
        ({"images": "folder of tars"}, "images"),
        ({"all_probabilities": True}, "columns"),
        ({"shard_size": 6}, "number of images per shard"),
        ({"size": 8}, "size or colour"),
    ],
)
def test_a_resume_with_something_else_is_refused(forms, memory, model, change, named) -> None:
    wanted = {"adaptor": Identity(), "images": "folder", "shard_size": 5}
    apply_archive(out=f"{memory}/out", box=model, **wanted | {"images": forms["folder"]})
    other = wanted | change
    other["images"] = forms[other["images"]]
    with pytest.raises(RunError, match=f"are of another {named}"):
        apply_archive(out=f"{memory}/out", box=model, resume=True, **other)


def test_an_output_that_exists_is_refused(forms, memory, model) -> None:
    with pytest.raises(StorageError, match="no answers to continue"):
        apply_archive(Identity(), forms["folder"], model, f"{memory}/out", resume=True)
    apply_archive(Identity(), forms["folder"], model, f"{memory}/out")
    asked = model.asked
    with pytest.raises(StorageError, match="continue them with resume=True"):
        apply_archive(Identity(), forms["folder"], model, f"{memory}/out")
    with pytest.raises(StorageError, match="holds other files"):
        apply_archive(Identity(), forms["folder"], model, forms["folder"])
    assert model.asked == asked


@pytest.mark.parametrize("cut", [5000, 5120, -1024])  # in a member, before one, before the end
def test_a_shard_that_is_no_tar_does_not_stop_the_others(
    tars, memory, model, rows, cut: int
) -> None:
    place = Place(f"{memory}/tars")
    good, other = tars
    place.write("part-000.tar", b"not a tar")
    place.write("part-001.tar", other)
    place.write("part-002.tar", good[:cut])
    with pytest.raises(ShardsFailed, match="2 of 3 shards failed") as failed:
        apply_archive(Identity(), f"{memory}/tars", model, f"{memory}/out")
    assert "part-000.tar is not a tar file" in str(failed.value)
    assert "part-002.tar is not a tar file, or is damaged" in str(failed.value)
    assert len(rows(f"{memory}/out")) == model.asked == 13
    place.write("part-000.tar", good)
    place.write("part-002.tar", good)
    apply_archive(Identity(), f"{memory}/tars", model, f"{memory}/out", resume=True)
    assert len(rows(f"{memory}/out")) == 33
    assert model.asked == 13 + 2 * 9


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.parquet", None, r"has the columns label \(int64\); expected are bytes in"),
        ("t.parquet", b"text", "is not a Parquet file"),
        ("t.csv", b"path,label\na.png,1\n", "its first line must be: file"),
        ("t.txt", b"text", "is not an archive of images"),
        ("no.tar.bz2", None, "does not exist"),
        ("no*.tar", None, "no file is called"),
        ("empty/notes.txt", b"text", "is not an archive of images"),
        ("empty/", None, "holds no image"),
    ],
)
def test_bad_input_is_refused_before_the_first_query(
    memory, model, labels_alone, name, data, message
) -> None:
    place = Place(memory)
    place.write("empty/notes.txt", b"text")
    place.write("t.parquet", labels_alone)
    if data is not None:
        place.write(name, data)
    with pytest.raises(ImageError, match=message):
        apply_archive(Identity(), f"{memory}/{name}", model, f"{memory}/out")
    assert model.asked == 0
    assert "_manifest.json" not in Place(f"{memory}/out").names()


def test_files_that_are_missing_are_rows_with_an_error(memory, model, rows) -> None:
    Place(memory).write("list.csv", b"file\nno.png\nfar/away.png\n")
    summary = apply_archive(Identity(), f"{memory}/list.csv", model, f"{memory}/out")
    assert summary.errors == 2 and summary.queries == 0
    assert rows(f"{memory}/out")[0]["error"] == f"no.png does not exist in {memory}."


def test_a_full_disk_leaves_nothing_that_looks_complete(folder, tmp_path, model) -> None:
    """A limit on the size of files fails writes in the same way, and needs no disk of its own."""
    out = tmp_path / "answers"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1800, hard))
    try:
        with pytest.raises(StorageError, match=r"could not be written: .*[\s\S]*resume=True"):
            apply_archive(Identity(), folder, model, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(path.name for path in out.iterdir()) == [
        *("_manifest.json", "_shards.jsonl", "_summary.json"),
    ]
    assert apply_archive(Identity(), folder, model, out, resume=True).complete


def test_conditions_and_distances(memory, forms, model, rows) -> None:
    from types import SimpleNamespace

    class Routed(Identity):
        kind = "test-routed"

        def routed(self, images):
            familiar = images.mean(axis=(1, 2, 3)) > 0.3
            conditions = (images.mean(axis=(1, 2, 3)) > 0.6).astype(int)
            distances = images.std(axis=(1, 2, 3))
            return self(images), SimpleNamespace(
                conditions=conditions, distances=distances, familiar=familiar
            )

    apply_archive(Routed(), forms["folder"], model, f"{memory}/out", shard_size=10)
    answers = rows(f"{memory}/out")
    assert {row["condition"] for row in answers} == {0, 1, None}
    assert [row["distance"] is None for row in answers] == [bool(row["error"]) for row in answers]
    unlike = [row for row in answers if row["condition"] is None and not row["error"]]
    assert unlike and all(row["class"] is not None for row in unlike)


def test_two_processes_do_not_write_to_one_folder(folder, tmp_path, model) -> None:
    from soda_tta.storage.locks import locked

    (tmp_path / "answers").mkdir()
    with (
        locked(tmp_path / "answers", "taken"),
        pytest.raises(StorageError, match="another process is writing"),
    ):
        apply_archive(Identity(), folder, model, tmp_path / "answers")


def test_what_is_refused_leaves_no_folder(tmp_path, model) -> None:
    with pytest.raises(ImageError, match="does not exist"):
        apply_archive(Identity(), tmp_path / "nowhere", model, tmp_path / "answers")
    assert not (tmp_path / "answers").exists()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("sqlite://x/y", "give a path, or an address"),
        ("gs://bucket/x", "pip install gcsfs"),
    ],
)
def test_addresses_that_cannot_be_opened(address: str, message: str) -> None:
    with pytest.raises(SodaError, match=message):
        Place(address)


def test_a_missing_package_is_named(monkeypatch, folder, tmp_path, model) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(SodaError, match=r"pip install 'soda-tta\[archive\]'"):
        apply_archive(Identity(), folder, model, tmp_path / "answers")


def test_wordnet_folders_have_the_view_of_imagenet(tmp_path, model, rows) -> None:
    from PIL import Image

    for name in ("n01440764", "n01443537"):
        (tmp_path / "val" / name).mkdir(parents=True)
        pixels = np.random.default_rng(0).integers(0, 256, (300, 260, 3), np.uint8)
        Image.fromarray(pixels).save(tmp_path / "val" / name / "1.png")
    expected = apply(Identity(), str(tmp_path / "val"), model).confidences
    apply_archive(Identity(), Path(tmp_path / "val"), model, tmp_path / "out")
    assert rows(str(tmp_path / "out"))[0]["confidence"] == np.float32(expected[0])
