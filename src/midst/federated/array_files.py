"""Updates in files: NumPy's .npz, and .safetensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from midst.errors import InputError, load_extra
from midst.federated.updates import Leaf
from midst.files import check_alone, write_whole

KINDS = (".npz", ".safetensors")


def read_arrays(path: Path, *, alone: bool = False) -> dict[str, Leaf]:
    """The arrays of a file, by name; with `alone` one that others may read or write is refused.

    Raises:
        InputError: there is no such file, or it is of another kind.
        MissingExtra: safetensors is not installed.
    """
    if path.suffix not in KINDS:
        raise InputError(f"{path}: arrays are read from {' or '.join(KINDS)} files; save them as one")
    tensors = _safetensors() if path.suffix == ".safetensors" else None
    try:
        with open(path, "rb") as raw:
            if alone:
                check_alone(raw.fileno(), path, "an update")
            if tensors is not None:
                return dict(tensors.load(raw.read()))
            with np.load(raw, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except InputError:
        raise
    except Exception:  # whatever a library calls it: what is in the file is no such thing, and is not repeated
        raise InputError(f"{path}: damaged, or no file of arrays; save them again") from None


def write_arrays(path: Path, arrays: dict[str, Leaf]) -> None:
    """Write arrays, whole or not at all, in the kind of file that the name says.

    Raises:
        InputError: the name says none.
        OSError: it cannot be written.
    """
    check_kind(path)
    if path.suffix == ".npz":
        write_whole(path, lambda file: np.savez(file, **arrays), mode=0o600)  # type: ignore[arg-type]
    else:
        raw = _safetensors().save(arrays)
        write_whole(path, lambda file: file.write(raw), mode=0o600)


def check_kind(path: Path) -> None:
    """Refuse a name of another kind of file."""
    if path.suffix not in KINDS:
        raise InputError(f"{path}: arrays are written to {' or '.join(KINDS)} files; name one")


def _safetensors() -> Any:
    return load_extra("safetensors.numpy", "federated")
