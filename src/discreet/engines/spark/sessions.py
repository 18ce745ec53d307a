"""Sessions of Spark: what is one, how it is opened by its address, and whether it is still there.

>>> is_spark("sc://data.example:15002"), is_spark("visits.parquet"), is_spark({"who": [1]})
(True, False, False)
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.core.errors import EngineUnavailable, InvalidArgument

__all__ = [
    "is_address",
    "is_alive",
    "is_connect",
    "is_interrupted",
    "is_spark",
    "is_spark_frame",
    "opened",
    "unless_lost",
]


def is_spark(source: object) -> bool:
    """Whether a source is a session of Spark, a frame in one, or the address of one."""
    return is_address(source) or is_spark_frame(source) or _is_session(source)


def is_address(source: object) -> bool:
    """Whether a source is the address of a cluster."""
    return isinstance(source, str) and re.match(r"\s*(sc|spark)://", source, re.I) is not None


def is_connect(session: Any) -> bool:
    """Whether a session is one of Spark Connect, whose plans are resolved by the server each time they are used."""
    return "connect" in type(session).__module__


def is_spark_frame(source: object) -> bool:
    """Whether a source is a frame of Spark."""
    return _of_spark(source) and hasattr(source, "sparkSession")


def _is_session(source: object) -> bool:
    return _of_spark(source) and hasattr(source, "catalog") and hasattr(source, "table")


def _of_spark(source: object) -> bool:
    return type(source).__module__.startswith("pyspark.sql.")


def is_interrupted(error: BaseException | None, before: BaseException | None) -> bool:
    """Whether a signal came on the way to an error; what was already being handled `before` does not count."""
    while error is not None and error is not before:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False


def is_alive(session: Any) -> bool:
    """Whether a session answers."""
    try:
        return bool(session.sql("SELECT 1").collect())
    except Exception:
        return False


@contextmanager
def unless_lost(session: Any) -> Iterator[None]:
    """What fails because there is no session any more is said in our words."""
    try:
        yield
    except Exception:
        if is_alive(session):
            raise
        raise EngineUnavailable("the session of Spark was lost") from None


def _reach(address: str) -> None:
    """Fail soon if nothing listens there, for which the client itself would wait ten minutes; a proxy may know more."""
    if not {"grpc_proxy", "https_proxy", "http_proxy"} & {name.lower() for name in os.environ}:
        place = urlsplit(address)
        socket.create_connection((place.hostname or "", place.port or 15002), timeout=10).close()


def opened(address: str) -> Any:
    """The session at an address; no message repeats what it holds beside the place."""
    if find_spec("pyspark") is None:
        remedy = "pip install 'discreet[spark]'"
        raise InvalidArgument("source", "spark://…", "read with pyspark, which is not installed", remedy)
    remote = address.startswith("sc://")
    home = os.environ.get("JAVA_HOME")
    if not remote and shutil.which("java") is None and (home is None or not (Path(home) / "bin" / "java").exists()):
        remedy = "install Java 17 or later (openjdk-17-jre-headless), or set JAVA_HOME"
        raise InvalidArgument("source", "spark://…", "read with Java, which is not found", remedy)
    try:
        if remote:
            _reach(address)
            return import_module("pyspark.sql.connect.session").SparkSession.builder.remote(address).create()
        session = import_module("pyspark.sql").SparkSession.builder.master(address).appName("discreet").getOrCreate()
        # Tasks that fail would write what a row holds to whoever asks.
        session.sparkContext.setLogLevel("OFF")
        return session
    except Exception:
        shown = re.split(r"[;/?]", address.partition("://")[2].rpartition("@")[2])[0]
    remedy = "see whether it runs and the address is right, and for sc:// pip install 'pyspark[connect]'"
    raise InvalidArgument("source", shown, "the address of a Spark that lets us in", remedy)
