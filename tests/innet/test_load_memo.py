"""LoadMemo: equal keys of the same parts are computed once, and a bounded number of values is held."""

from innet.placement import load_memo
from innet.placement.load_memo import LoadMemo


def test_value_is_computed_once_for_a_key_and_its_parts(monkeypatch):
    monkeypatch.setattr(load_memo, "MOST", 2)
    memo, computed, parts = LoadMemo(), [], ([1], [1])

    def find(key, part):
        return memo.find(key, (part,), lambda: computed.append((key, id(part))) or len(computed))

    assert [find("a", parts[0]), find("a", parts[1]), find("a", parts[0]), find("a", parts[1])] == [1, 2, 1, 2]
    assert find("b", parts[0]) == 3 and len(memo._found) == 1, "it began anew with the third"
    assert find("a", parts[0]) == 4 and find("b", parts[0]) == 3
