"""Whose batches a router writes: those of one query (pure)."""

from table.errors import InvalidConfigError


def check_serves(served: str | None, query_id: str, batch_id: int | None) -> None:
    """Refuses a second query: its batches have the same numbers as those of the first one.

    Args:
        served: the query of the batches before; None: there were none.
        query_id: the query of this batch.
        batch_id: its number.

    Raises:
        InvalidConfigError: it is another query; the message names both, and the ways out.
    """
    if served in (None, query_id):
        return
    raise InvalidConfigError(
        f"batch {batch_id} is of the query {query_id}, and this router writes the batches of the query {served}: "
        "batches of two queries have the same numbers; nothing of it is visible. Give each query a HudiRouter of its "
        "own, with a root of its own, or make one query of both streams (union). If this query takes the place of the "
        "other one, which has ended, call stop() of the router in between, or wait some seconds until it has released "
        "its tables; and if it does not go on where that one ended, give the router a "
        "hoodie.datasource.write.streaming.checkpoint.identifier of its own"
    )
