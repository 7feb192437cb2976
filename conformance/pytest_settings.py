"""The settings of a pytest session, read once: the same in every process of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from .options import OPTIONS
from .planning import planned
from .plugin import Refused, destination, shared
from .run import Plan
from .selection import Unusable
from .settings import Settings, read_settings
from .watchdog import Limits

_SETTINGS = pytest.StashKey[Settings]()
_PLAN = pytest.StashKey[Plan]()


def settings_of(config: pytest.Config) -> Settings:
    """What this session is asked for, by the pyproject.toml of its rootdir, by the environment and by its options.

    Raises:
        Unusable: something of that means nothing.
    """
    if _SETTINGS not in config.stash:
        options = {option.key: getattr(config.option, destination(option), None) for option in OPTIONS}
        settings = read_settings(config.rootpath / "pyproject.toml", options, prefix="--fencepost-")
        settings.use_server()
        config.stash[_SETTINGS] = settings
    return config.stash[_SETTINGS]


def limits_of(config: pytest.Config) -> Limits:
    """How long an adapter may take in this session."""
    settings = settings_of(config)
    advice = ", or allow for more by --fencepost-example-timeout"
    return Limits(settings.example_timeout, settings.run_timeout, advice=advice)


def plan_of(config: pytest.Config) -> Plan:
    """The plan of this session; its seed is the same in all processes.

    Raises:
        Refused: something that was asked for cannot be used.
    """
    if _PLAN not in config.stash:
        try:
            settings = settings_of(config)
            settings.check_files()
            seed = shared(config)["seed"] if settings.seed is None else settings.seed
            config.stash[_PLAN] = replace(planned(settings.model_copy(update={"seed": seed})), limits=limits_of(config))
        except Unusable as error:
            raise Refused(str(error)) from None
    return config.stash[_PLAN]


def check_settings(config: pytest.Config) -> None:
    """Refuse what cannot be used before anything is collected.

    Names are looked up only if an option was given: otherwise nobody may want to run any of ours, and looking up an
    adapter imports it.

    Raises:
        pytest.UsageError: says where and what to do.
    """
    try:
        settings_of(config)
        if any(getattr(config.option, destination(option), None) is not None for option in OPTIONS):
            plan_of(config)
    except (Unusable, Refused) as error:
        raise pytest.UsageError(str(error)) from None
