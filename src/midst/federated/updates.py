"""An update as a list of arrays, whatever a framework makes of it.

Rules:
- An update is an array, or dictionaries, lists and tuples of arrays, nested as they come: a state_dict, a list of
  weights, a tree of parameters. Whatever NumPy can read will do (torch, JAX, TensorFlow); none of them is imported.
- All clients' updates have the same names, shapes and types. Who differs is named, and in what; no number is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from midst.errors import InputError
from midst.problems import names_of
from midst.protocol.vectors.formats import find_dtype
from midst.protocol.vectors.layout import ArraySpec, Layout

Update = Any  # an array, or a Mapping, list or tuple of updates
Leaf = NDArray[Any]


def flatten(update: Update, whose: str) -> dict[str, Leaf]:
    """The arrays of an update by their names, in order; `whose` names the client in an error.

    Raises:
        InputError: a part of it is no array of real numbers, or two have one name.
    """
    arrays: dict[str, Leaf] = {}
    for name, leaf in _leaves(update):
        if name in arrays:
            raise InputError(f"{whose} has two arrays named {shown(name)}; rename one")
        arrays[name] = _array(leaf, f"{whose}: {shown(name)}")
    return arrays


def rebuild(update: Update, arrays: Iterator[Leaf]) -> Update:
    """The structure of an update, with other arrays in it, in the order of `flatten`."""
    if isinstance(update, Mapping):
        return {key: rebuild(part, arrays) for key, part in update.items()}
    if isinstance(update, list | tuple):
        parts = [rebuild(part, arrays) for part in update]
        return parts if isinstance(update, list) else tuple(parts)
    return next(arrays)


def specs_of(arrays: Mapping[str, Leaf]) -> tuple[ArraySpec, ...]:
    """What is public about an update's arrays."""
    return tuple(ArraySpec(name, array.shape, array.dtype.name) for name, array in arrays.items())


def fit(arrays: Mapping[str, Leaf], layout: Layout, whose: str, than: str) -> list[Leaf]:
    """An update's arrays in the order of a layout, checked against it.

    In an error `whose` names the client, and `than` what has the layout.

    Raises:
        InputError: names, shapes or types differ; or a number is not finite, or outside the bounds.
    """
    wanted = {spec.name: spec for spec in layout.arrays}
    for name in sorted(wanted.keys() ^ arrays.keys()):
        has, lacks = (than, whose) if name in wanted else (whose, than)
        raise InputError(f"{has} has an array {shown(name)}, {lacks} has none")
    fitting = []
    for spec in layout.arrays:
        array = arrays[spec.name]
        if array.shape != spec.shape:
            raise InputError(f"{whose}: {shown(spec.name)} has shape {array.shape}, that of {than} {spec.shape}")
        if array.dtype.name != spec.dtype:
            raise InputError(f"{whose}: {shown(spec.name)} has dtype {array.dtype}, that of {than} {spec.dtype}")
        fitting.append(array)
    for of, members in zip(layout.formats, layout.members, strict=True):
        for k in members:
            if (wrong := of.misfits(fitting[k])) is not None:
                raise InputError(f"{whose}: {shown(layout.arrays[k].name)} {wrong[0]}")
    return fitting


def count_clients(updates: Sequence[Update]) -> int:
    """How many there are.

    Raises:
        InputError: too few, or this is no list of updates.
    """
    if isinstance(updates, Mapping) or not hasattr(updates, "__len__"):
        raise InputError("updates must be a list with one entry a client; try list(updates.values())")
    if len(updates) < 3:
        raise InputError("with fewer than three clients each learns the other's numbers; at least three are needed")
    return len(updates)


def align(updates: Sequence[Update], bounds: Any, resolution: float | None) -> tuple[Layout, list[list[Leaf]]]:
    """What all updates have in common, and their arrays.

    Raises:
        InputError: they do not fit each other.
    """
    if bounds is not None and not (isinstance(bounds, tuple | list) and len(bounds) == 2):
        raise InputError("bounds must be two numbers (lower, upper), the same for all coordinates")
    flat = [flatten(update, f"client {i}") for i, update in enumerate(updates)]
    layout = Layout(specs_of(flat[0]), None if bounds is None else (float(bounds[0]), float(bounds[1])), resolution)
    return layout, [fit(arrays, layout, f"client {i}", "client 0") for i, arrays in enumerate(flat)]


def shown(name: str) -> str:
    """The name of an array, for people."""
    return f"'{name}'" if name else "the array"


def _leaves(update: Update, route: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every array of an update, with the keys that lead to it."""
    if isinstance(update, Mapping | list | tuple):
        for key, part in update.items() if isinstance(update, Mapping) else enumerate(update):
            yield from _leaves(part, (*route, key))
    else:
        yield ".".join(map(str, route)), update


def _array(leaf: Any, where: str) -> Leaf:
    if np.ma.is_masked(leaf) or hasattr(leaf, "columns") or (names := names_of(leaf) or []) != [*range(len(names))]:
        raise InputError(f"{where} has a mask, or names; fill it in, and give a dictionary, or to_numpy() in one order")
    for name in ("detach", "cpu"):  # a torch tensor may be part of a computation, and on a device
        method = getattr(leaf, name, None)
        leaf = method() if callable(method) else leaf
    try:
        array = np.asarray(leaf)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{where} cannot be read as a NumPy array; convert it first") from None
    try:
        kind = find_dtype(array.dtype.name)
    except InputError as error:
        raise InputError(f"{where} has {error}") from None
    return array.astype(kind, copy=False)
