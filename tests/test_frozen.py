"""Values are immutable: no array that a frozen dataclass holds can be written to, by whoever has the value."""

import copy
import importlib
import pickle
import pkgutil
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pytest

import isde
from isde import ISDE, TreeISDE, chance
from isde.arrays import FrozenArrays
from isde.engine.mixtures import grow_mixtures

HANDLED = (list, tuple, dict)
"""What arrays are looked for in."""


def every_frozen_dataclass():
    """Of every module of isde; those that need what is not installed aside."""
    for found in pkgutil.walk_packages(isde.__path__, "isde."):
        if found.name in ("isde.__main__", "isde.run.dask_cluster", "isde.run.ray_cluster"):
            continue
        for value in vars(importlib.import_module(found.name)).values():
            own = isinstance(value, type) and value.__module__ == found.name
            if own and is_dataclass(value) and value.__dataclass_params__.frozen:
                yield value


FROZEN = sorted(every_frozen_dataclass(), key=lambda kind: f"{kind.__module__}.{kind.__name__}")


def names_an_array(hint):
    """Whether a value of this type is an array, or holds some; what a function takes and returns aside."""
    if typing.get_origin(hint) is Callable or typing.get_origin(hint) is typing.get_origin(Callable[[], None]):
        return False
    kinds = (hint, typing.get_origin(hint))
    return np.ndarray in kinds or any(map(names_an_array, typing.get_args(hint)))


def names_a_list(hint):
    return typing.get_origin(hint) in (list, dict) or any(map(names_a_list, typing.get_args(hint)))


def hints_of(kind):
    """Of the fields; names that are imported for annotations alone hide no array."""
    modules = [vars(importlib.import_module(base.__module__)) for base in reversed(kind.__mro__)]
    module, missing = {name: value for own in modules for name, value in own.items()}, {}
    while True:
        try:
            return typing.get_type_hints(kind, {**module, **missing})
        except NameError as error:
            missing[error.name] = object


def arrays_in(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, HANDLED):
        for part in value.values() if isinstance(value, dict) else value:
            yield from arrays_in(part)


def writable(value):
    """The fields of a value whose arrays can be written to."""
    return [f.name for f in fields(value) if any(a.flags.writeable for a in arrays_in(getattr(value, f.name)))]


@pytest.mark.parametrize("kind", FROZEN, ids=lambda kind: f"{kind.__module__.removeprefix('isde.')}.{kind.__name__}")
def test_a_frozen_dataclass_with_arrays_freezes_them(kind):
    hints = [hint for name, hint in hints_of(kind).items() if name in {field.name for field in fields(kind)}]
    holding = [hint for hint in hints if names_an_array(hint)]
    assert not holding or issubclass(kind, FrozenArrays)
    assert not any(map(names_a_list, holding)), "a list can be changed: make it a tuple"


def test_no_value_that_a_fit_makes_holds_an_array_that_can_be_written_to(monkeypatch):
    """Every frozen dataclass is watched as it is made, those that a fit forgets too."""
    found, made = {}, set()

    def watched(kind):
        build = kind.__init__

        def made_and_looked_at(self, *args, **kwargs):
            build(self, *args, **kwargs)
            held = [f.name for f in fields(self) if next(arrays_in(getattr(self, f.name)), None) is not None]
            if held:
                made.add(type(self).__name__)
            if writable(self):
                found[type(self).__qualname__] = writable(self)

        return made_and_looked_at

    for kind in FROZEN:
        monkeypatch.setattr(kind, "__init__", watched(kind))
    monkeypatch.setattr(chance, "TABLES", 2)
    chance._draw_once.cache_clear()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X[:, 1] += X[:, 0] ** 2
    for model in (
        ISDE(random_state=0),
        TreeISDE(3, random_state=0),
        ISDE(4, marginal="kde", split="paper", random_state=0),
    ):
        model.fit(X).score_samples(X)
    chance._draw_once.cache_clear()
    assert found == {}
    expected = {"Chance", "DrawnTable", "Mixtures", "Scale", "Spline", "SubsetScores", "Tile", "Weights", "Work"}
    assert expected <= made


@dataclass(frozen=True)
class Nested(FrozenArrays):
    array: np.ndarray
    inside: tuple
    other: str = "as it is"


@pytest.mark.parametrize("copied", [lambda v: v, copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_a_copy_is_as_frozen_as_its_original(copied):
    value = copied(Nested(np.arange(3), (np.arange(2), ("words", np.zeros(1)))))
    assert writable(value) == []
    assert value.array.tolist() == [0, 1, 2]
    assert value.inside[1][0] == "words"
    with pytest.raises(ValueError, match="read-only"):
        value.inside[0][0] = 1


def test_whoever_gave_an_array_may_still_write_to_it():
    """A view is taken, no copy: rows by the gigabyte are held once."""
    own = np.arange(3)
    value = Nested(own, ())
    own[0] = 5
    assert value.array[0] == 5


def test_a_mixture_cannot_be_improved_behind_the_back_of_whoever_holds_it(rng):
    mixtures = grow_mixtures(rng.normal(size=(50, 2)), 2, 3)
    with pytest.raises(ValueError, match="read-only"):
        mixtures.means[1][0] = 0
