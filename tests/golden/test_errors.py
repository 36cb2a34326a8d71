"""The diagnostics of wrong texts match the golden files exactly."""

import pytest

from tests.golden.errors_runner import FOLDER, blocks

CASES = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in sorted(FOLDER.glob("*.test"))
    for number, block in enumerate(blocks(path), 1)
]


@pytest.mark.promise("errors-point", "bad-files")
@pytest.mark.parametrize("block", CASES)
def test_what_is_reported(block):
    assert block.reported() == block.expected


@pytest.mark.parametrize("block", CASES)
def test_every_block_is_about_an_error(block):
    assert block.expected
