"""A sampler's loops as they are written, beside the compiled ones: the same source, loaded once more."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from types import FunctionType, ModuleType

import numba
import pytest


def uncompiled(module: ModuleType, *loops: str) -> ModuleType:
    """The module without numba; these functions of it are what is compiled in the original."""
    spec = spec_from_file_location(f"{module.__name__}_uncompiled", module.__file__)
    assert spec is not None
    assert spec.loader is not None
    plain = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "DISABLE_JIT", True)
        spec.loader.exec_module(plain)
    for loop in loops:
        assert isinstance(getattr(plain, loop), FunctionType)
        assert not isinstance(getattr(module, loop), FunctionType)
    return plain
