"""The commands `discreet audit …`: whether mechanisms keep what they promise, and what nobody can do better."""

from __future__ import annotations

import typer

from discreet.app.commands.audit_bound import bound
from discreet.app.commands.audit_mechanism import mechanism
from discreet.app.commands.audit_session import session

__all__ = ["audit_app"]

audit_app = typer.Typer(no_args_is_help=True, help="Check what is promised, and what nobody can do better.")
audit_app.command()(mechanism)
audit_app.command()(session)
audit_app.command()(bound)
