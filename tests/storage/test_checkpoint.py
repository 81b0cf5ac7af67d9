"""Arrays and facts in one file: checkpoints and saved streams."""

import numpy as np
import pytest

from soda_tta.errors import RunError, StorageError
from soda_tta.storage.checkpoint import read_arrays, write_arrays
from soda_tta.storage.stream_file import FORMAT, read_stream_file, write_stream_file

ARRAYS = {
    "theta": np.array([1 / 3, np.nan, -0.0]),
    "images": np.arange(6, dtype=np.int64).reshape(2, 3).T,  # not contiguous
    "count": np.array(7),
    "empty": np.zeros((0, 4), np.float32),
}
FACTS = {"step": 3, "loss": 1 / 3, "name": "naïve", "nested": [1, None, True]}


def test_arrays_and_facts_are_restored_exactly(tmp_path) -> None:
    path = tmp_path / "folder" / "checkpoint.safetensors"
    write_arrays(path, ARRAYS, FACTS, "key")
    arrays, facts = read_arrays(path, "key", "it is damaged")
    assert facts == FACTS
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_a_file_without_the_key_is_refused(tmp_path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    write_arrays(path, ARRAYS, FACTS, "key")
    with pytest.raises(RunError, match=r"it is damaged \(KeyError\)\."):
        read_arrays(path, "other key", "it is damaged")


def test_a_file_cut_off_anywhere_is_refused(tmp_path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    write_arrays(path, ARRAYS, FACTS, "key")
    data = path.read_bytes()
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        with pytest.raises(RunError, match=r"it is damaged \(\w+\)\."):
            read_arrays(path, "key", "it is damaged")


def test_a_missing_file_or_a_folder_is_refused(tmp_path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(RunError, match="it is damaged"):
            read_arrays(path, "key", "it is damaged")


def test_a_checkpoint_that_cannot_be_written_keeps_the_previous_one(tmp_path, monkeypatch) -> None:
    path = tmp_path / "checkpoint.safetensors"
    write_arrays(path, ARRAYS, FACTS, "key")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", refuse)
    with pytest.raises(StorageError, match="No space left on device"):
        write_arrays(path, ARRAYS, {"step": 4}, "key")
    assert read_arrays(path, "key", "it is damaged")[1] == FACTS


def test_a_saved_stream_is_read_back(tmp_path) -> None:
    facts = {"format": FORMAT, "method": "soda-o", "box": {"fingerprint": "abc"}}
    write_stream_file(tmp_path / "stream", ARRAYS, facts)
    arrays, read_back = read_stream_file(tmp_path / "stream")
    assert read_back == facts
    np.testing.assert_array_equal(arrays["theta"], ARRAYS["theta"])


@pytest.mark.parametrize(
    "facts",
    [
        {"format": FORMAT - 1, "method": "soda-o", "box": {}},
        {"method": "soda-o", "box": {}},
        {"format": FORMAT, "method": "soda-o"},
        [],
        None,
    ],
)
def test_a_stream_of_another_version_is_refused(tmp_path, facts) -> None:
    write_stream_file(tmp_path / "stream", ARRAYS, facts)
    with pytest.raises(RunError, match="was written by another version of this package"):
        read_stream_file(tmp_path / "stream")


def test_what_is_not_a_saved_stream_is_refused(tmp_path) -> None:
    with pytest.raises(RunError, match=r"does not exist; give a file written by Stream\.save"):
        read_stream_file(tmp_path / "absent")
    (tmp_path / "text").write_text("not a stream")
    with pytest.raises(RunError, match=r"text is not a saved stream \("):
        read_stream_file(tmp_path / "text")
