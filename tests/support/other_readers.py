"""What DataFusion and fastparquet read of Parquet files of ours. Writes one JSON object to standard output.

other_readers.py READER,... KEY FILE...

KEY is a value of the column id, which is the record key.
"""

import json
import sys

import datafusion
import fastparquet
import pandas as pd
import pyarrow as pa

KEY, COLUMN = "_hoodie_record_key", "id"
NAMES = [KEY, COLUMN, "ts", "n", "few", "edge", "at", "day", "seq", "v"]
readers, key, *files = sys.argv[1:]


def by_datafusion():
    config = datafusion.SessionConfig().set("datafusion.execution.parquet.pushdown_filters", "true")
    context = datafusion.SessionContext(config)
    for number, file in enumerate(files):
        context.register_parquet(f"t{number}", file)
    union = " UNION ALL ".join(f"SELECT * FROM t{number}" for number in range(len(files)))

    def ask(what, where="true"):
        batches = context.sql(f"SELECT {what} FROM ({union}) WHERE {where}").collect()
        return pa.Table.from_batches(batches).to_pylist() if batches else []

    rows = ask(
        ", ".join(NAMES)
        .replace(" at,", " arrow_cast(at, 'Int64') AS at,")
        .replace(" day,", " arrow_cast(day, 'Int32') AS day,")
    )
    return {
        "rows": [[row[name] for name in NAMES] for row in rows],
        "by_column": len(ask(COLUMN, f"{COLUMN} = '{key}'")),
        "by_key": len(ask(f"{KEY}, v", f"{KEY} = '{key}' AND {COLUMN} = '{key}'")),
    }


def by_fastparquet():
    opened = [fastparquet.ParquetFile(file) for file in files]
    whole = pd.concat([file.to_pandas() for file in opened], ignore_index=True)[NAMES]
    whole["at"] = whole["at"].map(lambda at: None if pd.isna(at) else at.value // 1000)
    whole["day"] = whole["day"].map(lambda day: None if pd.isna(day) else day.value // 86_400_000_000_000)
    whole = whole.astype(object).where(whole.notna(), None)
    rows = [[int(x) if isinstance(x, (float, int)) else x for x in row] for row in whole.to_numpy().tolist()]
    found = {
        name: sum(len(file.to_pandas(filters=[(name, "==", key)], row_filter=True)) for file in opened)
        for name in (COLUMN, KEY)
    }
    return {
        "rows": rows,
        "by_column": found[COLUMN],
        "by_key": found[KEY],
    }


ways = {"datafusion": by_datafusion, "fastparquet": by_fastparquet}
print(json.dumps({reader: ways[reader]() for reader in readers.split(",")}, default=str))
