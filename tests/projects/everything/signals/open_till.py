from datetime import date

from sqlmesh import DatetimeRanges, signal


@signal()
def open_till(batch: DatetimeRanges, first: str) -> bool | DatetimeRanges:
    return [(start, end) for start, end in batch if start.date() >= date.fromisoformat(first)]
