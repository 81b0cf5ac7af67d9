"""The floors of the house: every module is on one, and imports only downwards.

Imports inside functions and under TYPE_CHECKING count too. CONTRIBUTING.md shows the same tree.
"""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import soda_tta

SOURCE = Path(soda_tta.__file__).parent
ROOT = Path(__file__).parents[1]

# From the bottom to the top. An entry is a module or a package with all that is in it; a module
# listed by itself is not part of its package's entry. Entries on one line do not know each other.
LAYERS = [
    ("_version", "masking", "foreign_json", "plain_json", "types", "wording"),
    ("foreign_text",),
    ("errors",),
    ("settings", "randomness", "user_code", "plotting", "display", "devices"),
    ("storage",),
    ("protocols",),
    # floor 1: parts; what tells conditions apart is also part of an adaptor
    ("conditions.statistics", "conditions.mixture", "conditions.emphasis"),
    ("conditions.router",),
    ("box", "adaptors", "search", "objectives", "data"),
    # floor 2
    ("judging", "conventions", "conditions", "zoo"),
    # floor 3: what the engine and the methods speak of, the engine, the methods themselves
    ("engine", "engine.plan", "engine.working_size", "engine.adapted_graph"),
    ("engine.events", "engine.export_check"),
    ("engine.work", "engine.progress"),
    ("methods.method",),
    ("methods.registry",),
    ("methods",),
    ("engine.groups", "engine.outcome_check"),
    (
        "engine.rounding",
        "engine.card",
        "engine.clean",
        "engine.convention",
        "engine.step",
        "engine.passes",
        "engine.restored",
    ),
    ("engine.class_matching",),
    ("engine.loop", "engine.run"),
    ("engine.stated_prior", "engine.live_method", "engine.live_pixels"),
    ("engine.live_events", "engine.live_arrivals", "engine.live_buffer", "engine.live_search"),
    ("engine.live_answers",),
    ("engine.live_condition",),
    ("engine.live_source",),
    ("engine.live_units", "engine.live_file"),
    ("engine.live_learner",),
    ("engine.live",),
    ("engine.rejudge_conditions",),
    ("engine.rates", "engine.saved", "engine.stream", "engine.execution"),
    ("engine.adapt", "engine.apply", "engine.rejudge", "engine.training_plan", "engine.export"),
    ("engine.triton",),
    ("methods.tools",),
    ("methods.answer_settings", "methods.helped"),
    ("methods.economy_confirm",),
    ("methods.economy_sizes", "methods.economy_judge", "methods.economy_merging"),
    ("methods.economy_plan", "methods.economy_survey"),
    ("methods.economy_campaign", "methods.economy_answers", "methods.economy_helper"),
    ("methods.economy_verdicts",),
    ("methods.loop_method", "methods.economy", "methods.input_space", "methods.neighbours"),
    ("methods.augmentation",),
    ("methods.deployed", "methods.soda", "methods.office_home"),
    ("methods.online", "methods.pseudo_labels", "methods.distillation", "methods.yardsticks"),
    # floor 4: instruments
    ("scale",),
    ("doctor", "bench", "serve"),
    ("report",),
    ("demo", "live_demo", "testing"),
    # floor 5: doors
    ("cli",),
    ("__main__",),
]
FRONT_DOOR = "soda_tta"  # names modules as text, so it may know all of them

# Names in the text of a module, which it imports when they are needed. Each is a decision.
NAMED_NOT_IMPORTED = {
    "engine.run": {"report"},  # Run.report
    "methods.registry": {"methods"},  # the table of methods
}


def modules() -> dict[str, Path]:
    """Every module of the package, without the package's own name in front."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        if name != "__init__":
            found[name] = path
    return found


MODULES = modules()
FLOORS = {entry: floor for floor, entries in enumerate(LAYERS) for entry in entries}


def entry_of(module: str) -> str | None:
    """The entry of the list that a module belongs to: the longest one that fits."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        # `engine` and `methods` stand for their __init__ alone: each of their modules is listed
        if name in FLOORS and (length == len(parts) or name not in ("engine", "methods")):
            return name
    return None


def imports_of(module: str) -> set[str]:
    """The modules of this package that a module imports, wherever in its file."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                known = inner.removeprefix("soda_tta.") in MODULES
                found.add(inner if known else node.module)
    ours = {name.removeprefix("soda_tta.") for name in found if name.startswith("soda_tta.")}
    return ours - {module}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_module_is_on_exactly_one_floor(module: str) -> None:
    assert entry_of(module) is not None, f"{module} is on no floor: add it to LAYERS"


def test_the_list_names_nothing_that_does_not_exist_and_nothing_twice() -> None:
    entries = [entry for layer in LAYERS for entry in layer]
    assert len(entries) == len(set(entries))
    assert not [entry for entry in entries if entry not in MODULES]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_downwards_only(module: str) -> None:
    own = entry_of(module)
    for imported in imports_of(module):
        entry = entry_of(imported)
        if entry == own:
            continue
        assert FLOORS[entry] < FLOORS[own], f"{module} imports {imported}, which is not below it"


def test_there_is_no_import_cycle() -> None:
    graph = {module: imports_of(module) for module in MODULES}
    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize("module", sorted(MODULES))
def test_modules_that_are_named_in_text_are_known(module: str) -> None:
    text = MODULES[module].read_text()
    named = {name.split(".")[0] for name in re.findall(r'"soda_tta\.([\w.]+):\w+"', text)}
    assert named <= NAMED_NOT_IMPORTED.get(module, set())


def test_the_engine_knows_methods_only_by_their_protocol() -> None:
    for module in MODULES:
        if module.startswith("engine."):
            methods = {name for name in imports_of(module) if name.startswith("methods")}
            assert methods <= {"methods.method", "methods.registry"}, module


def names_given(module: str) -> set[str]:
    """The parameters of the functions of a module, and the fields of its classes."""
    names = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def takes_labels(module: str) -> bool:
    """Whether true labels could come in. Labels of the distillation are those of the model."""
    if "data.dataset" in imports_of(module) or "judging.labelled" in imports_of(module):
        return True
    own = module.startswith("methods.distillation.")
    return not own and bool({"labels", "true_labels", "dataset"} & names_given(module))


def test_labels_do_not_reach_a_method_or_a_search() -> None:
    learning = [name for name in MODULES if name.startswith(("engine.", "methods.", "search."))]
    taking = {name for name in learning if takes_labels(name)}
    # `soda-tta judge` decides by labels what to do with a run that has ended.
    assert taking == {"engine.rejudge"}
    assert not [name for name in learning if "engine.rejudge" in imports_of(name)]


def test_no_file_is_longer_than_300_lines() -> None:
    long = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert not {name: lines for name, lines in long.items() if lines > 300}


def test_adapt_fits_on_one_screen() -> None:
    tree = ast.parse(MODULES["engine.adapt"].read_text())
    (adapt,) = [node for node in tree.body if getattr(node, "name", None) == "adapt"]
    body = adapt.body[1:]  # without the docstring
    assert body[-1].end_lineno - body[0].lineno < 40


def test_contributing_shows_every_module() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    words = set(re.findall(r"\w+", text))
    names = {name.rpartition(".")[2] for name in MODULES}
    assert not sorted(names - words)


@pytest.mark.parametrize("statement", ["import soda_tta", "from soda_tta import load_box"])
def test_the_front_door_and_the_boxes_need_no_heavy_package(statement: str) -> None:
    heavy = ["torch", "onnxruntime", "onnx", "httpx", "grpc", "sklearn", "rich", "scipy", "cmaes"]
    check = f"set(sys.modules) & set({heavy!r})"
    code = f"{statement}; import sys; assert not {check}, {check}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_front_door_lists_its_names() -> None:
    names = dir(soda_tta)
    assert {"adapt", "apply", "examine", "load_box", "load_dataset", "Run", "BoxError"} <= set(
        names
    )
    for name in names:
        assert getattr(soda_tta, name) is not None
