"""The settings of every method: each is explained, accepted again, and refused if impossible."""

import pytest

from soda_tta.errors import MethodError
from soda_tta.methods import all_methods
from soda_tta.methods.loop_method import LoopMethod

SODA = all_methods()["soda"]
VARIANTS = [
    SODA.but(search="evolution"),
    SODA.but(search="per-image"),
    SODA.but(adaptor="bank"),
    SODA.but(step="adam"),
]


@pytest.mark.parametrize(
    "wrong",
    [
        {"queries": 3},
        {"q": "many"},
        {"q": 2.5},
        {"q": 0},
        {"lr": -1},
        {"step": "lion"},
        {"epochs": -1},
        {"residual": "perhaps"},
        {"average": 2},
    ],
)
def test_unknown_names_and_impossible_values_are_refused(wrong) -> None:
    with pytest.raises(MethodError):
        SODA.but(**wrong)


@pytest.mark.parametrize(
    "method", [*all_methods().values(), *VARIANTS], ids=lambda method: method.name
)
def test_every_setting_of_every_method_is_explained_and_nothing_else(method) -> None:
    assert list(method.meanings) == list(method.settings)
    assert not [name for name, line in method.meanings.items() if not line]


def test_every_other_meaning_belongs_to_a_setting() -> None:
    for method in all_methods().values():
        if isinstance(method, LoopMethod):
            assert set(method.other_meanings) <= set(method.settings), method.name


def test_a_setting_has_the_meaning_of_its_own_method() -> None:
    assert "MixMatch" in all_methods()["beta"].meanings["alpha"]
    assert "trusted" in SODA.meanings["alpha"]
    evolution = SODA.but(search="evolution")
    assert "deviation" in evolution.meanings["sigma"]
    assert evolution.meanings["sigma"] != SODA.meanings["sigma"]


@pytest.mark.parametrize("name", ["deployed", "soda-e", "lame", "bn"])
def test_methods_without_epochs_refuse_them(name) -> None:
    assert "epochs" not in all_methods()[name].settings
    with pytest.raises(MethodError, match="has no setting 'epochs'"):
        all_methods()[name].but(epochs=5)


@pytest.mark.parametrize("name", ["lr", "q", "search", "step", "batch", "average"])
def test_a_method_that_learns_nothing_has_no_settings(name) -> None:
    with pytest.raises(MethodError, match=f"deployed has no setting '{name}'; it has none"):
        all_methods()["deployed"].but(**{name: 1})


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("soda", {"momentum": 1}),
        ("soda", {"weight_decay": -1}),
        ("soda", {"alpha": -1}),
        ("soda", {"beta": -0.1}),
        ("soda-r", {"beta1": 1}),
        ("soda-r", {"beta2": -0.1}),
        ("soda-r", {"epsilon": 0}),
        ("da-pl", {"beta": -1}),
        ("tent", {"lr": -1}),
        ("ma-so", {"lr": 0}),
        ("ma-so", {"tau": 5}),
        ("ma-so", {"alpha": -1}),
        ("lame", {"neighbours": -4}),
        ("lame", {"steps": 0}),
        ("soda-office-home", {"momentum": 2}),
        ("soda-office-home", {"agreement": -1}),
        ("soda", {"epochs": None}),
        ("soda", {"epochs": True}),
        ("soda", {"lr": [1]}),
        ("soda-e", {"without": ["colour"]}),
    ],
)
def test_impossible_settings_are_refused_at_once(method: str, settings) -> None:
    with pytest.raises(MethodError):
        all_methods()[method].but(**settings)


@pytest.mark.parametrize(
    ("method", "name"),
    [("soda-r-office-home", "q"), ("da-pl", "tau"), ("da-direct", "rho"), ("soda-fo", "search")],
)
def test_settings_without_an_effect_are_refused(method: str, name: str) -> None:
    assert {"q": "directions"}.get(name, name) not in all_methods()[method].settings
    with pytest.raises(MethodError):
        all_methods()[method].but(**{name: "multi-point" if name == "search" else 0.5})


@pytest.mark.parametrize("method", list(all_methods()))
def test_a_method_accepts_the_settings_it_lists(method: str) -> None:
    settings = all_methods()[method].settings
    assert all_methods()[method].but(**settings).settings == settings


@pytest.mark.parametrize("method", ["soda", "da-pgd", "soda-o"])
def test_one_setting_under_two_names_is_refused(method: str) -> None:
    with pytest.raises(MethodError, match="q and directions are the same setting"):
        all_methods()[method].but(q=3, directions=5)
