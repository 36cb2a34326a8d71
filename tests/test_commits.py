"""tools/commits.py: which subjects of commits are refused."""

import pytest

from tools.commits import faults


@pytest.mark.parametrize(
    ("subject", "word"),
    [
        ("Added a file", "imperative"),
        ("The late reading is revised", "imperative"),
        ("Expire queries at the end of FOR, then release the readings that wait for it", "characters"),
        ("expire queries", "capital"),
        ("Expire queries.", "full stop"),
    ],
)
def test_subject_is_refused_with_its_fault(subject, word):
    assert any(word in fault for fault in faults(subject))


@pytest.mark.parametrize("subject", ["Expire queries at the end of FOR", "Bring windows back", "Embed the schema"])
def test_imperative_subject_is_accepted(subject):
    assert faults(subject) == []
