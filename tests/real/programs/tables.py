#!/usr/bin/env python3
"""Compares queries of DuckDB, Spark and Ray on the tables of a thousand recordings with `vram report --json` of each recording.

Usage: tables.py ENGINE VRAM, with ENGINE duckdb, spark or ray
"""
import json
import platform
import random
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

RANKS, COMMITS = 500, ("4c1f", "9be0")


def recording(rank, commit):
    """A run of ten call sites; from the second commit on, one of them allocates more on every seventh rank."""
    chance = random.Random(rank * 10 + COMMITS.index(commit))
    events, live, time_us = [], [], 1_700_000_000_000_000 + rank
    for number in range(120):
        site = chance.randrange(10)
        grown = site == 3 and commit == COMMITS[1] and rank % 7 == 0
        size = 512 * (1 + chance.randrange(4096)) * (4 if grown else 1)
        frames = [{"name": f"layer{site}", "filename": "model.py", "line": 100 + site}]
        address = 0x7F0000000000 + number * (1 << 26)
        events.append({"action": "alloc", "addr": address, "size": size, "stream": 0, "time_us": time_us, "frames": frames})
        live.append((address, size))
        if len(live) > 20:
            gone = live.pop(chance.randrange(len(live)))
            events += [{"action": action, "addr": gone[0], "size": gone[1], "stream": 0, "time_us": time_us + 1, "frames": []}
                       for action in ("free_requested", "free_completed")]
        time_us += 10
    return {"segments": [], "device_traces": [events]}


def make(folder, vram):
    """Returns the tables, and the peak of each (commit, rank) by the report."""
    reported = {}
    for commit in COMMITS:
        job = folder / commit
        job.mkdir()
        for rank in range(RANKS):
            (job / f"mem_rank{rank}.json").write_text(json.dumps(recording(rank, commit)))
        subprocess.run([vram, "convert", "--to", "arrow", "--job", "j" + commit, "--label", f"commit={commit}", job, "-o", f"{folder}/tables/"], check=True)
        reports = subprocess.run([vram, "report", "--json", "--no-cure", job], capture_output=True, text=True, check=False).stdout
        for report in json.loads(reports):
            rank = int(report["file"].split("rank")[1].split(".")[0])
            allocated = report["devices"]["0"]["allocated"]
            reported[commit, rank] = (allocated["peak_bytes"], {site["site"]: site["bytes"] for site in allocated["top_sites_at_peak"]})
    assert len(reported) == RANKS * len(COMMITS)
    return reported


def to_parquet(folder):
    import pyarrow as pa
    import pyarrow.dataset as ds
    for table in ("events", "peaks", "sites"):
        data = ds.dataset(folder / "tables" / table, format="ipc", partitioning="hive")
        parts = ds.partitioning(pa.schema([data.schema.field(name) for name in ("job", "commit")]), flavor="hive")
        ds.write_dataset(data, folder / "parquet" / table, format="parquet", partitioning=parts, max_partitions=4096)


def ask_duckdb(folder):
    import duckdb
    import pyarrow.dataset as ds
    peaks = ds.dataset(folder / "tables/peaks", format="ipc", partitioning="hive")
    sites = ds.dataset(folder / "tables/sites", format="ipc", partitioning="hive")
    events = ds.dataset(folder / "tables/events", format="ipc", partitioning="hive")
    duckdb.register("peaks", peaks), duckdb.register("sites", sites), duckdb.register("events", events)
    grown = duckdb.sql(f"""SELECT a.site, count(*) FROM sites a JOIN sites b ON a.site = b.site AND a.rank = b.rank
        WHERE a.commit = '{COMMITS[0]}' AND b.commit = '{COMMITS[1]}' AND b.bytes > 3 * a.bytes GROUP BY a.site ORDER BY count(*) DESC""").fetchall()
    print("grew more than threefold:", grown[:3])
    return (duckdb.sql("SELECT commit, rank, allocated_peak_bytes FROM peaks").fetchall(),
            duckdb.sql("SELECT commit, rank, site, bytes FROM sites").fetchall(), duckdb.sql("SELECT count(*) FROM events").fetchall()[0][0])


def snappy(folder):
    """Returns Java options that name the library for glibc. If musl is also installed (tools/setup.sh packages), snappy-java chooses the library for musl,
    which glibc cannot load."""
    import pyspark
    if not Path("/lib/ld-musl-x86_64.so.1").exists() or platform.libc_ver()[0] != "glibc":
        return ""
    jar, = Path(pyspark.__file__).parent.glob("jars/snappy-java-*.jar")
    library = Path(zipfile.ZipFile(jar).extract("org/xerial/snappy/native/Linux/x86_64/libsnappyjava.so", folder / "snappy"))
    return f"-Dorg.xerial.snappy.lib.path={library.parent} -Dorg.xerial.snappy.lib.name={library.name}"


def ask_spark(folder):
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.extraJavaOptions", snappy(folder)).getOrCreate()
    for table in ("peaks", "sites", "events"):
        spark.read.parquet(str(folder / "parquet" / table)).createOrReplaceTempView(table)
    answer = ([tuple(row) for row in spark.sql("SELECT commit, rank, allocated_peak_bytes FROM peaks").collect()],
              [tuple(row) for row in spark.sql("SELECT commit, rank, site, bytes FROM sites").collect()],
              spark.sql("SELECT count(*) AS n FROM events").collect()[0].n)
    spark.stop()
    return answer


def ask_ray(folder):
    import ray
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    peaks = ray.data.read_parquet(str(folder / "parquet/peaks"), partitioning=ray.data.datasource.Partitioning("hive"))
    sites = ray.data.read_parquet(str(folder / "parquet/sites"), partitioning=ray.data.datasource.Partitioning("hive"))
    events = ray.data.read_parquet(str(folder / "parquet/events"))
    answer = ([(row["commit"], row["rank"], row["allocated_peak_bytes"]) for row in peaks.take_all()],
              [(row["commit"], row["rank"], row["site"], row["bytes"]) for row in sites.take_all()], events.count())
    ray.shutdown()
    return answer


def main():
    engine, vram = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reported = make(folder, vram)
        if engine != "duckdb":
            to_parquet(folder)
        peaks, sites, events = {"duckdb": ask_duckdb, "spark": ask_spark, "ray": ask_ray}[engine](folder)
        assert {(commit, int(rank)): size for commit, rank, size in peaks} == {key: value[0] for key, value in reported.items()}
        found = {}
        for commit, rank, site, size in sites:
            found.setdefault((commit, int(rank)), {})[site] = size
        assert all(sum(rows.values()) == reported[key][0] for key, rows in found.items())
        assert all(found[key][site] == size for key, value in reported.items() for site, size in value[1].items())
        print(f"{engine}: {len(peaks)} peaks, {len(sites)} sites, {events} events, as the report says")


if __name__ == "__main__":
    main()
