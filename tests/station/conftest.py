"""Logging goes to the stream of one test, which is closed after it; later tests of the process log nowhere."""

import logging

import pytest

from gateway.log import ROOT


@pytest.fixture(autouse=True)
def log_of_this_test_only():
    yield
    logging.getLogger(ROOT).handlers[:] = [logging.NullHandler()]
