"""Classes whose methods are written when they are first needed: they do what classes of attrs do."""

from __future__ import annotations

import copy
import functools
import pickle
import subprocess
import sys
import typing
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any, ClassVar, Generic, TypeVar
from unittest import mock

import attrs
import pytest

import grid.values
from grid.ports import LeaseSecrets
from grid.values import define, frozen

T = TypeVar("T")


def decorated(with_frozen: Callable[..., Any], with_define: Callable[..., Any]) -> dict[str, type]:
    """The same classes with each pair of decorators."""

    @with_frozen(kw_only=True)
    class Plain:
        number: int
        secret: bytes = attrs.field(repr=False, default=b"s")
        many: tuple[int, ...] = ()
        count: ClassVar[int] = 7

        @property
        def kind(self) -> type:
            return __class__  # type: ignore[name-defined,no-any-return]

    @with_frozen(kw_only=True)
    class Derived(Plain):
        text: str = "t"

        @property
        def kind(self) -> type:
            return super().kind

    @with_define
    class Changing:
        number: int
        items: list[int] = attrs.field(factory=list)
        _hidden: int = attrs.field(default=3, alias="hidden")
        later: int = attrs.field(init=False, default=0)

        def __attrs_post_init__(self) -> None:
            self.later = self.number + self._hidden

    @with_define(eq=False)
    class Identified:
        number: int = attrs.field(validator=attrs.validators.ge(0))
        half: int = attrs.field(default=4, converter=lambda value: value // 2)

    @with_frozen
    class Box(Generic[T]):
        content: T

    class Shape(ABC):
        @abstractmethod
        def area(self) -> int: ...

    @with_frozen
    class Square(Shape):
        side: int

        def area(self) -> int:
            return self.side**2

    @with_define
    class OwnText:
        number: int

        def __repr__(self) -> str:
            return "own"

    @with_define(eq=False)
    class ChangingBelow(OwnText):
        more: int = 1

    return {
        each.__name__: each
        for each in (Plain, Derived, Changing, Identified, Box, Square, OwnText, ChangingBelow)
    }  # fmt: skip


LATER = decorated(frozen, define)
AT_ONCE = decorated(attrs.frozen, attrs.define)
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "Plain": [{"number": 1}, {"number": 1, "secret": b"x"}, {"number": 2, "many": (1, 2)}, {"number": 1}],
    "Derived": [{"number": 1}, {"number": 1, "text": "u"}, {"number": 1}],
    "Changing": [{"number": 1}, {"number": 1, "hidden": 5}, {"number": 1, "items": [1]}, {"number": 1}],
    "Identified": [{"number": 1}, {"number": 1, "half": 9}, {"number": -1}, {"number": 1}],
    "Box": [{"content": 1}, {"content": "x"}, {"content": []}, {"content": 1}],
    "Square": [{"side": 1}, {"side": 2}, {"side": 1}, {}],
    "OwnText": [{"number": 1}, {"number": 2}, {"number": 1}, {"other": 1}],
    "ChangingBelow": [{"number": 1}, {"number": 1, "more": 2}, {"number": 1}],
}


def outcome(call: Callable[[], Any]) -> object:
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def behavior(cls: type, arguments: list[dict[str, Any]]) -> object:
    """What can be seen of objects of the class."""
    made = [outcome(lambda given=given: cls(**given)) for given in arguments]  # type: ignore[misc]
    objects = [each for each in made if isinstance(each, cls)]
    return [
        [each if not isinstance(each, cls) else repr(each).replace(hex(id(each)), "") for each in made],
        [[one == other for other in objects] + [one != other for other in objects] for one in objects],
        [(outcome(lambda each=each: hash(each) == hash(copy.copy(each)))) for each in objects],  # type: ignore[misc]
        [outcome(lambda each=each: setattr(each, "number", 9)) for each in objects],  # type: ignore[misc]
        [outcome(lambda each=each: setattr(each, "unknown", 9)) for each in objects],  # type: ignore[misc]
        [outcome(lambda each=each: attrs.asdict(each)) for each in objects],  # type: ignore[misc]
        [weakref.ref(each)() is each for each in objects],
        [getattr(each, "kind", None) is getattr(type(each), "kind", None) for each in objects],
        [field.name for field in attrs.fields(cls)],
        [hasattr(each, "__dict__") for each in objects],
    ]


@pytest.mark.parametrize("name", LATER)
def test_objects_are_those_of_attrs(name: str) -> None:
    assert behavior(LATER[name], ARGUMENTS[name]) == behavior(AT_ONCE[name], ARGUMENTS[name])


def test_comparisons_begin_before_any_other_method_was_needed() -> None:
    for kind in (decorated(frozen, define), decorated(attrs.frozen, attrs.define)):
        assert {kind["Plain"](number=1), kind["Plain"](number=1)} == {kind["Plain"](number=1)}
        assert kind["Derived"](number=1) != kind["Plain"](number=1)
        assert str(kind["Derived"](number=1)).endswith("Derived(number=1, many=(), text='t')")
        with pytest.raises(TypeError, match="unhashable"):
            hash(kind["Changing"](number=1))


def test_class_of_a_method_is_the_one_that_is_used() -> None:
    kind = decorated(frozen, define)
    assert kind["Derived"](number=1).kind is kind["Plain"]


def test_evolve_and_match_know_the_fields() -> None:
    @frozen
    class Box:
        content: int

    match attrs.evolve(Box(5), content=6):
        case Box(content):
            assert content == 6


def test_class_asks_for_its_fields_before_there_is_an_object() -> None:
    derived = decorated(frozen, define)["Derived"]
    assert attrs.has(derived)
    assert [field.name for field in attrs.fields(derived)] == ["number", "secret", "many", "text"]


@pytest.mark.parametrize("round_", range(20))
def test_first_objects_of_two_threads(round_: int) -> None:
    plain, barrier, found = decorated(frozen, define)["Derived"], Barrier(4), list[object]()

    def make() -> None:
        barrier.wait()
        found.append(hash(plain(number=round_)) == hash(plain(number=round_)) and plain(number=1) == plain(number=1))

    threads = [Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_exceptions_and_classes_with_their_own_methods_are_left_to_attrs() -> None:
    @frozen
    class Problem(Exception):
        text: str

    assert str(Problem("t")) == "t"
    assert Problem("t") != Problem("t")
    with pytest.raises(Problem):
        raise Problem("t")


def test_changing_class_below_a_frozen_one_is_frozen_as_with_attrs() -> None:
    for with_frozen, with_define in ((frozen, define), (attrs.frozen, attrs.define)):

        @with_frozen
        class Fixed:
            number: int = 1

        @with_define
        class Below(Fixed):
            more: int = 2

        made: Any = Below
        assert (made().number, made(3, 4).more) == (1, 4)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            made().more = 5


def test_classes_that_need_more_of_attrs_get_it() -> None:
    begun: list[type] = []

    class Registered:
        def __init_subclass__(cls) -> None:
            begun.append(cls)

    @frozen
    class Lazy:
        number: int

        @functools.cached_property
        def double(self) -> int:
            return 2 * self.number

    @frozen
    class Known(Registered):
        number: int
        kept: typing.ClassVar[int] = 3

    assert Lazy(4).double == 8 and Known.kept == 3
    assert Known(1).number == 1 and begun[-1] is Known and len(begun) == 2
    assert Lazy.__qualname__.endswith("<locals>.Lazy")
    assert repr(decorated(frozen, define)["Box"](1)) == repr(decorated(attrs.frozen, attrs.define)["Box"](1))


def test_methods_that_were_replaced_for_a_while_work_again() -> None:
    @frozen
    class Plain:
        number: int

    with mock.patch.object(Plain, "__init__", return_value=None), mock.patch.object(Plain, "__repr__", str):
        Plain(1)
    assert (Plain(1), repr(Plain(2))) == (Plain(1), repr(Plain(2)))


def test_value_is_read_in_a_process_that_has_made_none() -> None:
    secrets = pickle.dumps(LeaseSecrets(renew=bytes(32), cancel=bytes(32)))
    script = "import pickle, sys; made = pickle.loads(bytes.fromhex(sys.argv[1])); print(made.renew == bytes(32), made)"
    command = [sys.executable, "-c", script, secrets.hex()]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout == "True LeaseSecrets()\n"


def test_import_writes_few_methods() -> None:
    """A class that makes an object while it is imported costs as much as before; there are few."""
    script = (
        "import attr._make as make, grid.values\n"
        "built = []\n"
        "begin = grid.values._Draft.begin\n"
        "grid.values._Draft.begin = lambda draft: (built.append(draft), begin(draft))[1]\n"
        "import grid.transfer.grid_end, grid.cli.main, grid.wire.http.client.server\n"
        "print(len(set(built)))\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert int(answer.stdout) <= 16


def test_methods_of_every_class_can_be_written() -> None:
    """What attrs refuses would be found only with the first object, which may be rare."""
    script = (
        "import importlib, pkgutil, grid, grid.values\n"
        "drafts, prepare = [], grid.values._Draft.__init__\n"
        "def noting(draft, *arguments, **options):\n"
        "    prepare(draft, *arguments, **options)\n"
        "    drafts.append(draft)\n"
        "grid.values._Draft.__init__ = noting\n"
        "for module in pkgutil.walk_packages(grid.__path__, 'grid.'):\n"
        "    if not module.name.endswith('._lanes'):\n"  # It is no module of Python.
        "        importlib.import_module(module.name)\n"
        "for draft in drafts:\n"
        "    draft.begin()\n"
        "    draft.finish()\n"
        "print(len(drafts))\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert int(answer.stdout) > 500


def test_checkers_see_attrs() -> None:
    """Type checkers have plugins for attrs, and know nothing of ours."""
    assert grid.values.__all__ == ["define", "field", "frozen"]
