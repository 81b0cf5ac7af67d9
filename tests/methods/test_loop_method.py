"""The paper's methods: their settings, and how settings are changed."""

from soda_tta.methods import all_methods
from soda_tta.search import Adam

SODA = all_methods()["soda"]


def test_soda_has_the_settings_of_the_paper() -> None:
    settings = SODA.settings
    expected = {
        "directions": 5,
        "mu": 1e-3,
        "sigma": 0.1,
        "epochs": 150,
        "batch": 256,
        "tau": 0.9,
        "rho": 0.9,
        "alpha": 1e-4,
        "lr": 1e-3,
        "momentum": 0.9,
        "weight_decay": 1e-5,
        "width": 64,
        "blocks": 0,
        "pairs": 0,
        "activation": "hardswish",
        "step": "sgd",
    }
    assert {name: settings[name] for name in expected} == expected


def test_a_setting_is_changed_by_its_name_from_python_or_from_text() -> None:
    assert SODA.but(q=10).search.directions == SODA.but(q="10").search.directions == 10
    assert SODA.but(residual="false").adaptor.residual is False
    assert SODA.but(average="true").average
    assert SODA.but(average="true").settings["average"] is True
    assert SODA.but(aligned=False).reliable.aligned is False
    assert SODA.but(alpha="1e-2").objective.alpha == 0.01
    assert SODA.but(step="adam").step == Adam(lr=1e-3, weight_decay=1e-5)
    assert SODA.search.directions == 5  # the method itself never changes


def test_lr_can_be_auto_and_a_number_again() -> None:
    assert len(SODA.but(lr="auto").learning_rates) == 5
    assert SODA.but(lr="auto").but(lr=0.01).settings["lr"] == 0.01
    assert SODA.but(lr="auto").settings["lr"] == "auto"
