"""A cache by identity computes once for each object, and holds a bounded number of them."""

from innet.operators import identity_cache
from innet.operators.identity_cache import cache_by_identity, cache_newest


def test_value_is_computed_once_for_each_object(monkeypatch):
    monkeypatch.setattr(identity_cache, "MOST", 3)
    computed = []

    @cache_by_identity
    def double(value):
        """Twice as much."""
        computed.append(value)
        return 2 * value[0]

    objects = [(number,) for number in range(3)]
    assert [double(each) for each in (*objects, *objects)] == [0, 2, 4, 0, 2, 4] and computed == objects
    other = tuple([1])
    assert other == objects[1] and double(other) == 2 and computed == [*objects, (1,)]
    assert double(objects[0]) == 0 and computed == [*objects, (1,), (0,)], "it began anew with the fourth"
    assert double.__doc__ == "Twice as much."


def test_newest_value_alone_is_kept():
    computed = []

    @cache_newest
    def double(value):
        computed.append(value)
        return 2 * value[0]

    first, second = [1], [1]
    assert [double(each) for each in (first, first, second, second, first)] == [2] * 5
    assert [id(each) for each in computed] == [id(each) for each in (first, second, first)]
