"""Prints the records of a run directory as pyarrow finds them: read_run.py DIR. A test runs it."""
import json
import pathlib
import sys

import pyarrow as pa


def batches(folder):
    """Every whole batch of a run directory: ended, going on, or cut off."""
    for segment in sorted(pathlib.Path(folder).glob("segment-*.arrows")):
        try:
            with pa.ipc.open_stream(segment) as stream:
                yield from stream
        except (pa.ArrowInvalid, OSError):
            pass  # what follows the last whole batch is half a batch


def main(folder):
    manifest = json.loads((pathlib.Path(folder) / "manifest.json").read_text())
    assert manifest["reprise_records"] == 1
    for batch in batches(folder):
        assert batch.schema.metadata[b"reprise_records"] == b"1"
        for row in batch.to_pylist():
            fields = ("run", "step", "replay", "kind", "layer", "shard", "shards", "shard_axis",
                      "content", "request", "first_row", "rows", "place", "dtype")
            shape = "x".join(str(size) for size in row["shape"])
            print(*(row[field] for field in fields), shape, row["bytes"].hex())


main(sys.argv[1])
