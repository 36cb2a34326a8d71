"""Every exception of the product derives from MoteloomError and ends in Error."""

import importlib
import pkgutil

import pytest

import acquisition
import basestation
import gateway
import innet
import simulator
from gateway.errors import MoteloomError

PACKAGES = (gateway, acquisition, innet, basestation, simulator)


def exceptions():
    """Yield the exception classes that the modules of the product define."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".spark" in module.name:
                continue  # needs pyspark
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, BaseException) and value.__module__ == module.name:
                    yield value


@pytest.mark.parametrize("exception", sorted(exceptions(), key=lambda e: e.__name__), ids=lambda e: e.__name__)
def test_exception_has_the_common_base_and_suffix(exception):
    assert issubclass(exception, MoteloomError)
    assert exception.__name__.endswith("Error")
