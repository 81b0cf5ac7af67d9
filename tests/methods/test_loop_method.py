import pytest

from soda_tta.errors import MethodError
from soda_tta.methods import all_methods, find_method
from soda_tta.methods.meanings import MEANINGS, meanings
from soda_tta.search import Adam

SODA = all_methods()["soda"]


def test_soda_holds_the_papers_numbers() -> None:
    settings = SODA.settings
    want = dict(
        directions=5, mu=1e-3, sigma=0.1, epochs=150, batch=256, tau=0.9, rho=0.9, alpha=1e-4
    )
    want |= dict(
        lr=1e-3,
        momentum=0.9,
        weight_decay=1e-5,
        width=64,
        blocks=0,
        pairs=0,
        activation="hardswish",
        step="sgd",
    )
    assert {name: settings[name] for name in want} == want


def test_a_number_is_changed_by_its_name_from_python_or_from_text() -> None:
    assert SODA.but(q=10).search.directions == SODA.but(q="10").search.directions == 10
    assert SODA.but(residual="false").adaptor.residual is False
    assert SODA.but(average="true").average and SODA.but(average="true").settings["average"] is True
    assert SODA.but(aligned=False).reliable.aligned is False
    assert SODA.but(alpha="1e-2").objective.alpha == 0.01
    assert SODA.but(step="adam").step == Adam(lr=1e-3, weight_decay=1e-5)
    assert SODA.search.directions == 5  # the recipe itself never changes


def test_lr_auto_and_back() -> None:
    assert len(SODA.but(lr="auto").learning_rates) == 5
    assert SODA.but(lr="auto").but(lr=0.01).settings["lr"] == 0.01
    assert SODA.but(lr="auto").settings["lr"] == "auto"


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


def test_an_unknown_method_is_refused_with_the_list_of_those_there_are() -> None:
    with pytest.raises(MethodError, match="deployed, soda-e, soda, soda-auto"):
        find_method("sodda")


def test_methods_of_ones_own_by_module_and_name() -> None:
    assert find_method("soda_tta.methods.soda:soda") is all_methods()["soda"]
    for place, told in (
        ("nowhere:mine", "nowhere"),
        ("math:mine", "mine"),
        ("math:pi", "is float"),
        (":", "Empty"),
    ):
        with pytest.raises(MethodError, match=told):
            find_method(place)


def every_number() -> dict[str, set[str]]:
    """Each number with the methods that have it, and the places a meaning of it may be found at."""
    variants = [
        SODA.but(search="evolution"),
        SODA.but(search="per-image"),
        SODA.but(adaptor="bank"),
    ]
    found: dict[str, set[str]] = {}
    for method in (*all_methods().values(), *variants):
        for name in method.settings:
            found.setdefault(name, {"recipe"}).update(
                {method.name, str(method.settings.get("search"))}
            )
    return found


def test_every_number_of_every_method_is_explained_and_nothing_else() -> None:
    for method in all_methods().values():
        assert not [name for name, line in meanings(method).items() if not line], method.name
    known = every_number()
    for place in MEANINGS:
        owner, _, name = place.rpartition(".")
        assert name in known and (not owner or owner in known[name]), place


def test_a_number_means_what_its_method_makes_of_it() -> None:
    assert (
        "MixMatch" in meanings(all_methods()["beta"])["alpha"]
        and "trusted" in meanings(SODA)["alpha"]
    )
    assert "deviation" in meanings(SODA.but(search="evolution"))["sigma"]
    assert meanings(SODA.but(search="evolution"))["sigma"] != meanings(SODA)["sigma"]


@pytest.mark.parametrize("name", ["deployed", "soda-e", "lame", "bn"])
def test_methods_without_epochs_refuse_them(name) -> None:
    assert "epochs" not in all_methods()[name].settings
    with pytest.raises(MethodError, match="has no number 'epochs'"):
        all_methods()[name].but(epochs=5)


@pytest.mark.parametrize("number", ["lr", "q", "search", "step", "batch", "average"])
def test_what_learns_nothing_has_no_numbers(number) -> None:
    with pytest.raises(MethodError, match=f"deployed has no number '{number}'; it has none"):
        all_methods()["deployed"].but(**{number: 1})


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
def test_impossible_numbers_are_refused_where_they_are_given(method: str, settings) -> None:
    with pytest.raises(MethodError):
        all_methods()[method].but(**settings)


@pytest.mark.parametrize(
    ("method", "number"),
    [("soda-r-office-home", "q"), ("da-pl", "tau"), ("da-direct", "rho"), ("soda-fo", "search")],
)
def test_numbers_that_would_do_nothing_are_refused(method: str, number: str) -> None:
    assert {"q": "directions"}.get(number, number) not in all_methods()[method].settings
    with pytest.raises(MethodError):
        all_methods()[method].but(**{number: "multi-point" if number == "search" else 0.5})


@pytest.mark.parametrize("method", list(all_methods()))
def test_what_a_method_lists_it_takes(method: str) -> None:
    settings = all_methods()[method].settings
    assert all_methods()[method].but(**settings).settings == settings


@pytest.mark.parametrize("method", ["soda", "da-pgd", "soda-o"])
def test_one_number_by_two_names_is_refused(method: str) -> None:
    with pytest.raises(MethodError, match="q and directions are one number"):
        all_methods()[method].but(q=3, directions=5)
