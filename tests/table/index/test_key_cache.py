"""What a worker process remembers of keys, for all its sinks together."""

from table.index import key_cache
from table.index.key_cache import KeyCache, cache_of_process


def test_two_sinks_of_one_process_do_not_empty_each_others_cache(monkeypatch):
    monkeypatch.setattr(key_cache, "_of_process", KeyCache(0))
    small = cache_of_process(1_000)
    assert cache_of_process(4_000) is small
    assert cache_of_process(1_000) is small
    assert small.limit_bytes == 4_000
    assert cache_of_process(0) is not small
