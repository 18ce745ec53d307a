"""A cluster on this machine: a server for Spark Connect, a master and a worker in it, and an executor for its jobs."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Java that starts fast: compiled once, collected by one thread, and classes of Spark are not verified again."""
CLUSTER = "local-cluster[1,2,600]"
"""A worker with two cores and 600 MB."""
PATIENCE = 300
"""Seconds that a server may take to start."""
SETTINGS = {
    "spark.connect.grpc.binding.address": HOST,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.driver.extraJavaOptions": QUICK,
}


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of the server, and its process."""
    with ExitStack() as stack:
        connect = free()
        settings = SETTINGS | {"spark.connect.grpc.binding.port": str(connect)}
        settings |= {"spark.sql.warehouse.dir": str(folder / "warehouse")}
        said = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
        server = started(folder, "spark-submit", "--master", CLUSTER, *said, "--class", kind, "spark-internal")
        process = stack.enter_context(server)
        wait(connect, process)
        yield f"sc://{HOST}:{connect}", process


@contextmanager
def started(folder: Path, program: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Spark, until the block is left."""
    small = {"SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "768m"}
    small |= {"SPARK_DAEMON_JAVA_OPTS": QUICK, "SPARK_LAUNCHER_OPTS": QUICK}
    command = [str(HOME / "bin" / program), *arguments]
    with (folder / f"{arguments[0].rpartition('.')[2].strip('-')}.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **small}, stdout=log, stderr=log, cwd=folder)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def free() -> int:
    """A port that nobody uses."""
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        return int(taken.getsockname()[1])


def wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until a process listens."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as tried:
            if tried.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens on {port}")
