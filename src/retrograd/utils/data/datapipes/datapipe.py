"""``IterDataPipe`` and ``MapDataPipe``: data sets with a method for each registered step."""

from __future__ import annotations

import functools
import importlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from ..dataset import Dataset, IterableDataset

Kind = TypeVar("Kind", bound=type)
INVALID = (
    "This iterator has been invalidated because another iterator has been created from the same IterDataPipe: {}\n"
    "This may be caused multiple references to the same IterDataPipe. We recommend using `.fork()` if that is necessary."
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel free to comment on this issue: "
    "https://github.com/pytorch/data/issues/45."
)


class _Pipe:
    """Base class of data pipes: ``functions`` are the registered steps by their names."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        step = type(self).functions.get(name)
        if step is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")  # as in PyTorch
        return functools.partial(step, self)

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Add ``function``, which takes a data pipe first, as a method of all data pipes."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: type, enable_df_api_tracing: bool = False
    ) -> None:
        """Add the class ``cls_to_register`` as a method of all data pipes."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        def step(source: Any, *args: Any, **options: Any) -> Any:
            return cls_to_register(source, *args, **options)

        step.__doc__, step.__name__ = cls_to_register.__doc__, function_name
        cls.functions[function_name] = step

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_current"}

    def __repr__(self) -> str:
        return type(self).__qualname__


class IterDataPipe(_Pipe, IterableDataset[Any]):
    """Data set that is read in order, with steps as methods; a new iterator ends that before, and calls ``reset()``.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(5)).map(lambda x: x * 2).batch(2))
    [[0, 2], [4, 6], [8]]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _current = 0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__iter__" in vars(cls):
            cls.__iter__ = _single(vars(cls)["__iter__"])  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[Any]:
        return self

    def reset(self) -> None:
        """Prepare a new pass; subclasses redefine this method."""


def _single(function: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    """Return the method ``__iter__`` that resets the data pipe and ends its iterator before."""

    @functools.wraps(function)
    def again(self: Any) -> Iterator[Any]:
        self._current = number = self._current + 1
        self.reset()
        for each in function(self):
            yield each
            if self._current != number:
                raise RuntimeError(INVALID.format(self))

    return again


class MapDataPipe(_Pipe, Dataset[Any]):
    """Data set that is read by keys, with steps as methods.

    >>> from retrograd.utils.data.datapipes.map import SequenceWrapper
    >>> pipe = SequenceWrapper([1, 2, 3]).map(lambda x: 10 * x).batch(2)
    >>> len(pipe), pipe[0], pipe[1]
    (2, [10, 20], [30])
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DFIterDataPipe(IterDataPipe):
    """Data pipe of data frames.

    >>> class Rows(DFIterDataPipe):
    ...     def __iter__(self):
    ...         yield {"x": [1, 2]}
    >>> isinstance(Rows(), IterDataPipe), list(Rows())
    (True, [{'x': [1, 2]}])
    """


class _SerializationWrapper:
    """Base class of wrappers that are pickled with the data pipe, also if it has lambda expressions (by ``dill``)."""

    def __init__(self, datapipe: Any) -> None:
        self._datapipe = datapipe

    def __getstate__(self) -> Any:
        try:
            return pickle.dumps(self._datapipe), False
        except (AttributeError, TypeError, pickle.PicklingError):
            return importlib.import_module("dill").dumps(self._datapipe), True

    def __setstate__(self, state: Any) -> None:
        data, by_dill = state
        if by_dill:
            self._datapipe = importlib.import_module("dill").loads(data)
        else:
            self._datapipe = pickle.loads(data)

    def __len__(self) -> int:
        return len(self._datapipe)


class _IterDataPipeSerializationWrapper(_SerializationWrapper, IterDataPipe):
    def __init__(self, datapipe: Any) -> None:
        super().__init__(datapipe)
        self._iterator: Any = None

    def __iter__(self) -> Any:
        self._iterator = iter(self._datapipe)
        return self._iterator


class _MapDataPipeSerializationWrapper(_SerializationWrapper, MapDataPipe):
    def __getitem__(self, index: Any) -> Any:
        return self._datapipe[index]


# --- Decorators -----------------------------------------------------------------------------------------------------


class functional_datapipe:
    """Decorator of a class of a data pipe, which adds it as the method ``name`` of data pipes.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> @functional_datapipe("every_second")
    ... class EverySecond(IterDataPipe):
    ...     def __init__(self, datapipe):
    ...         self.datapipe = datapipe
    ...     def __iter__(self):
    ...         for index, item in enumerate(self.datapipe):
    ...             if index % 2 == 0:
    ...                 yield item
    >>> list(IterableWrapper("abcde").every_second())
    ['a', 'c', 'e']
    >>> del IterDataPipe.functions["every_second"]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Kind) -> Kind:
        if not isinstance(cls, type) or not issubclass(cls, (IterDataPipe, MapDataPipe)):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe or MapDataPipe")
        base = IterDataPipe if issubclass(cls, IterDataPipe) else MapDataPipe
        base.register_datapipe_as_function(self.name, cls)
        return cls


class guaranteed_datapipes_determinism:
    """Context manager in which data pipes that are not deterministic cannot be made.

    >>> @non_deterministic
    ... class Noise(IterDataPipe):
    ...     pass
    >>> with guaranteed_datapipes_determinism():
    ...     Noise()
    Traceback (most recent call last):
        ...
    TypeError: Noise is non-deterministic with the inputs, ...
    """

    active: ClassVar[bool] = False

    def __init__(self) -> None:
        self.before = guaranteed_datapipes_determinism.active
        guaranteed_datapipes_determinism.active = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        guaranteed_datapipes_determinism.active = self.before


def non_deterministic(arg: Any) -> Any:
    """Decorate a class of data pipes that are not deterministic, or for which ``arg(...)`` is true.

    >>> @non_deterministic(lambda path: path.startswith("http"))
    ... class Lines(IterDataPipe):
    ...     def __init__(self, path):
    ...         self.path = path
    >>> with guaranteed_datapipes_determinism():
    ...     Lines("data.txt").path
    'data.txt'
    >>> with guaranteed_datapipes_determinism():
    ...     Lines("http://data.txt")
    Traceback (most recent call last):
        ...
    TypeError: Lines is non-deterministic with the inputs, ...
    """

    def decorate(cls: type, condition: Callable[..., bool] | None = None) -> Any:
        @functools.wraps(cls, updated=())
        def made(*args: Any, **options: Any) -> Any:
            if guaranteed_datapipes_determinism.active and (condition is None or condition(*args, **options)):
                raise TypeError(
                    f"{cls.__name__} is non-deterministic with the inputs, but you set 'guaranteed_datapipes_determinism'. "
                    "You can turn off determinism for this DataPipe if that is acceptable for your application"
                )
            return cls(*args, **options)

        return made

    return decorate(arg) if isinstance(arg, type) else lambda cls: decorate(cls, arg)


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``f``; the types of data pipes are not checked.

    >>> @argument_validation
    ... def total(pipe: IterDataPipe):
    ...     return sum(pipe)
    >>> total([1, 2])
    3
    """
    return f


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``f``; the types of items are not checked.

    >>> class Numbers(IterDataPipe):
    ...     @runtime_validation
    ...     def __iter__(self):
    ...         yield from (1, 2)
    >>> list(Numbers())
    [1, 2]
    """
    return f


class runtime_validation_disabled:
    """Context manager without effect: the types of items are not checked.

    >>> from retrograd.utils.data.datapipes.iter import IterableWrapper
    >>> with runtime_validation_disabled():
    ...     list(IterableWrapper([1, "a"]))
    [1, 'a']
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


__all__ = [
    "DFIterDataPipe", "IterDataPipe", "MapDataPipe", "argument_validation", "functional_datapipe",
    "guaranteed_datapipes_determinism", "non_deterministic", "runtime_validation", "runtime_validation_disabled",
]  # fmt: skip
