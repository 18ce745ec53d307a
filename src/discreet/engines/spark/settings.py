"""Settings of a session of Spark that change what our statements mean, or whether they can be read at all.

They are looked at when a session is connected to, before each charge and before each run. The list was made by going
through all settings of Spark 4.3 (`SQLConf`); a setting that a version does not have keeps its value. What only makes
statements faster or slower, changes what is written, or concerns types and functions that no statement of ours uses, is
left to whoever owns the session.
"""

from __future__ import annotations

import re
from typing import Any

from discreet.core.errors import InvalidArgument

__all__ = ["TIMEOUT", "check_settings"]

NEEDED = {
    # How a text is read.
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.interval.enabled": "false",
    # What a name stands for. With a path, functions of a schema could stand in for those of Spark.
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.path.enabled": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "corrected",
    "spark.sql.legacy.cteDuplicateAttributeNames": "false",
    "spark.sql.legacy.useCurrentConfigsForView": "false",
    # What numbers become, and which rows are counted.
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.scalarSubqueryCountBugBehavior": "false",
    "spark.sql.legacy.inSubqueryNullability": "false",
    "spark.sql.optimizer.metadataOnly": "false",
    # What one stored value does to others. The reader by rows fails on more of them, and files that are passed over
    # from the value on that is corrupt lose the rows of others.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.enableVectorizedReader": "true",
}
"""What statements rely on: the settings as they are unless somebody changes them."""
REBASED = tuple(f"spark.sql.{kind}RebaseModeInRead" for kind in ("parquet.datetime", "parquet.int96", "avro.datetime"))
"""Settings by which one date of long ago could make a statement fail."""
GROUPED = "spark.sql.optimizer.windowGroupLimitThreshold"
"""The setting that at 0 leaves out all rows of which only the first few of each group are kept."""
TIMEOUT = "spark.discreet.timeout"
"""The setting for how many seconds a statement may take."""


def check_settings(session: Any) -> None:
    """Raise InvalidArgument for the first setting that our statements could not bear."""
    settings: dict[str, str] = dict(session.conf.getAll)
    for name, wanted in NEEDED.items():
        value = str(settings.get(name, wanted)).lower()
        if value != wanted:
            raise InvalidArgument(name, value, wanted, f"spark.conf.set({name!r}, {wanted!r})")
    for name in REBASED:
        if str(settings.get(name, "corrected")).lower() == "exception":
            remedy = f"spark.conf.set({name!r}, 'CORRECTED')"
            raise InvalidArgument(name, "exception", "corrected or legacy, which fail on no date", remedy)
    if str(settings.get(GROUPED, "1000")) == "0":
        raise InvalidArgument(GROUPED, "0", "positive, or -1", f"spark.conf.set({GROUPED!r}, '1000')")
    allowed = str(settings.get(TIMEOUT, "1"))
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]+)?", allowed):
        raise InvalidArgument(TIMEOUT, allowed, "a number of seconds", f"spark.conf.set({TIMEOUT!r}, '600')")
