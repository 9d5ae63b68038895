"""`define` and `frozen` of attrs, for classes whose methods are written when they are first needed.

attrs takes 0.4 ms to write the methods of a class, most of it for those that compare, hash and print. A command imports 280
classes, makes objects of half of them, and compares or prints those of ten: writing all methods was a quarter of its start.
Here a class gets only its slots at first. attrs writes its `__init__` for its first object, and the methods
that compare, hash and print when one of them is first called. [docs/decisions/0517-methods-when-they-are-needed.md]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from inspect import get_annotations
from threading import RLock
from types import CellType
from typing import TYPE_CHECKING, Any, Generic

import attrs

if TYPE_CHECKING:
    from attrs import define, field, frozen
else:
    field = attrs.field

    def define(cls: type | None = None, **options: object) -> object:
        """`attrs.define`, later."""
        return _decorate(attrs.define, cls, options)

    def frozen(cls: type | None = None, **options: object) -> object:
        """`attrs.frozen`, later."""
        return _decorate(attrs.frozen, cls, options)


__all__ = ["define", "field", "frozen"]

Decorator = Callable[..., Any]
"""One of attrs."""

_OPTIONS = {"eq", "kw_only"}
"""Classes with other options get their methods at once."""

_COMPARING = ("__eq__", "__ne__", "__hash__", "__repr__")
_OTHERS = (
    "__attrs_own_setattr__", "__attrs_props__", "__delattr__", "__getstate__", "__match_args__", "__replace__", "__setattr__",
    "__setstate__", "__attrs_attrs__", "__init__",
)  # fmt: skip
"""`__init__` is the last: with it, other threads begin to use the class."""

_BUILT_IN = {"__dict__", "__weakref__"}
_WRITTEN_BY_HAND = {"__init__", "__new__", "__setattr__", "__getstate__", "__slots__", *_COMPARING}
"""What attrs would take account of: classes with any of these get their methods at once."""

_CLASS_VARIABLES = ("ClassVar", "typing.ClassVar", "t.ClassVar")

_lock = RLock()
"""Held while methods are written: two threads may make the first object of a class."""


def _decorate(decorate: Decorator, cls: type | None, options: Mapping[str, object]) -> object:
    if cls is None:
        return lambda cls: _decorate(decorate, cls, options)
    is_hashable = decorate is attrs.frozen or options.get("eq") is False
    if not _can_wait(cls, options) or not (is_hashable or cls.__bases__ == (object,)):
        _begin_bases(cls)
        return decorate(cls, **options)
    return _Draft(decorate, cls, options, is_hashable=is_hashable).made


def _can_wait(cls: type, options: Mapping[str, object]) -> bool:
    names, body = _annotated(cls), cls.__dict__
    return (
        options.keys() <= _OPTIONS
        and not _WRITTEN_BY_HAND & body.keys()
        and not issubclass(cls, BaseException)
        and not any(isinstance(value, cached_property) for value in body.values())
        and not any(isinstance(value, _FIELD) and name not in names for name, value in body.items())
        and not any("__init_subclass__" in base.__dict__ and base is not Generic for base in cls.__mro__[1:-1])
    )


_FIELD: type = type(attrs.field())


class _Draft:
    """A class without methods of attrs. made: the class."""

    def __init__(self, decorate: Decorator, cls: type, options: Mapping[str, object], *, is_hashable: bool) -> None:
        """cls: the class as written, from which attrs makes another, for its methods."""
        self._decorate, self._cls, self._options = decorate, cls, options
        self._written: dict[str, Any] = {}
        names = _annotated(cls)
        body: dict[str, Any] = {
            name: value for name, value in cls.__dict__.items() if name not in names and name not in _BUILT_IN
        }
        body["__slots__"] = tuple(_new_slots(cls, names))
        body["__attrs_attrs__"] = _Fields(self)
        body["__qualname__"] = cls.__qualname__
        for name in ("__init__", "__setstate__"):
            body[name] = self._beginning(name)
        for name in ("__repr__",) if options.get("eq") is False else _COMPARING:
            body[name] = self._finishing(name)
        if not is_hashable:
            body["__hash__"] = None
        self.made: Any = type(cls)(cls.__name__, cls.__bases__, body)
        for cell in _cells_of(body.values()):  # Those of `super()` and `__class__`.
            with suppress(ValueError):  # It is empty.
                if cell.cell_contents is cls:
                    cell.cell_contents = self.made

    def _beginning(self, name: str) -> Callable[..., None]:
        def first(made: object, /, *arguments: object, **named: object) -> None:
            self.begin()
            self._written[name](made, *arguments, **named)

        return first

    def _finishing(self, name: str) -> Callable[..., object]:
        def method(made: object, /, *arguments: object) -> object:
            self.finish()
            written: Callable[..., object] = self._written[name]
            return written(made, *arguments)

        method.__name__ = name
        return method

    def begin(self) -> None:
        """Write the methods that the first object needs."""
        with _lock:
            if "__init__" not in self._written:
                _begin_bases(self.made)
                self._take(self._decorate(self._cls, **{**self._options, "eq": False, "repr": False}), _OTHERS)

    def finish(self) -> None:
        """Write the methods that compare, hash and print."""
        with _lock:
            if "__repr__" not in self._written:
                _begin_bases(self.made)
                self._take(self._decorate(self._cls, **self._options), _COMPARING)

    def _take(self, built: type, names: Iterable[str]) -> None:
        for name in names:
            if name in built.__dict__:
                self._written[name] = built.__dict__[name]
                setattr(self.made, name, built.__dict__[name])


class _Fields:
    """What attrs knows of a class, for those who ask before there is an object."""

    def __init__(self, draft: _Draft) -> None:
        self._draft = draft

    def __get__(self, instance: object, owner: type) -> object:
        self._draft.begin()
        known: object = self._draft.made.__attrs_attrs__
        return known


def _begin_bases(cls: type) -> None:
    """Attrs looks at the methods of bases, too."""
    for base in cls.__mro__[1:]:
        getattr(base, "__attrs_attrs__", None)


def _annotated(cls: type) -> list[str]:
    """The names of the class's own fields."""
    kinds = get_annotations(cls)
    return [name for name, kind in kinds.items() if not str(kind).strip("'\"").startswith(_CLASS_VARIABLES)]


def _new_slots(cls: type, names: Iterable[str]) -> Iterator[str]:
    above = cls.__mro__[1:-1]
    yield from (name for name in names if not any(name in base.__dict__.get("__slots__", ()) for base in above))
    if not any("__weakref__" in base.__dict__ for base in above):
        yield "__weakref__"


def _cells_of(values: Iterable[object]) -> Iterator[CellType]:
    for value in values:
        functions = (value.fget, value.fset) if isinstance(value, property) else (getattr(value, "__func__", value),)
        for function in functions:
            yield from getattr(function, "__closure__", None) or ()
