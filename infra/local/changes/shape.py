"""Checks that the emulator has the parts that the changes replace."""

import importlib.metadata
import inspect

EMULATOR_VERSION = "1.5.33"


class Mismatch(Exception):
    """The installed emulator is not the one this launcher was written for."""


def check_version() -> None:
    installed = importlib.metadata.version("ministack")
    if installed != EMULATOR_VERSION:
        raise Mismatch(f"written for ministack {EMULATOR_VERSION}, found {installed}")


def named(owner: object, name: str) -> object:
    """`owner.name`, or a `Mismatch` with the missing name."""
    try:
        return getattr(owner, name)
    except AttributeError:
        where = getattr(owner, "__qualname__", None) or getattr(owner, "__name__", repr(owner))
        raise Mismatch(f"ministack {EMULATOR_VERSION} should have {where}.{name}, but has not") from None


def expect_parameters(function: object, expected: list[str]) -> None:
    found = list(inspect.signature(function).parameters)
    if found != expected:
        raise Mismatch(f"{function.__qualname__} should take {expected}, but takes {found}")
