"""Facts and arrays as bytes: what the page reads without parsing a number.

| bytes  | what                                                                                 |
|--------|--------------------------------------------------------------------------------------|
| 4      | length of the head, little-endian                                                    |
| head   | JSON, padded: the facts, and under "arrays" the type, shape and place of each array  |
| arrays | one after the other, little-endian, each at a multiple of 8 bytes from the beginning |
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

HEAD = struct.Struct("<cI")  # of a frame between processes: its letter, and the length of its body
_TYPES = {"f": ("<f8", "f64"), "i": ("<i4", "i32"), "u": ("<i4", "i32"), "b": ("<i4", "i32")}
_FORMS = {kind: form for form, kind in _TYPES.values()}

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


class Parts(NamedTuple):
    """A run and its audit, packed."""

    run: bytes
    audit: bytes


def pack(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The facts and the arrays, as one run of bytes."""
    table: dict[str, dict[str, Any]] = {}
    bodies: list[bytes] = []
    place = 0
    for name, array in arrays.items():
        form, kind = _TYPES[array.dtype.kind]
        body = np.ascontiguousarray(array, form).tobytes()
        body += bytes(-len(body) % 8)
        table[name] = {"type": kind, "shape": list(array.shape), "at": place}
        bodies.append(body)
        place += len(body)
    head = json.dumps({**facts, "arrays": table}, allow_nan=False).encode()
    head += b" " * (-(4 + len(head)) % 8)
    return b"".join([struct.pack("<I", len(head)), head, *bodies])


def unpack(packed: bytes) -> tuple[Facts, Arrays]:
    """The facts and the arrays again."""
    (length,) = struct.unpack_from("<I", packed)
    facts = json.loads(packed[4 : 4 + length])
    arrays = {}
    for name, each in facts.pop("arrays").items():
        flat = np.frombuffer(packed, _FORMS[each["type"]], math.prod(each["shape"]), 4 + length + each["at"])
        arrays[name] = flat.reshape(each["shape"])
    return facts, arrays
