"""What can go wrong for a user, and the exit code each cause has."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line; the README lists them."""

    OK = 0
    """The answer is on stdout."""
    FAILED = 1
    """The question could not be answered: SQL refused, no such pass or layer."""
    USAGE = 2
    """The command line or a settings file is wrong."""
    BAD_INPUT = 3
    """A trace or config file cannot be read as what it should be."""
    EMPTY = 4
    """The input is well formed but holds nothing to analyse (no device events)."""
    REFUSED = 5
    """The trace does not determine the answer; the message names the choices."""
    LOSSY = 6
    """With --strict: the file holds text that had to be repaired or was lost."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C."""


class TraceSqlError(Exception):
    """A cause the user can act on: one line that says what, where and what to do next."""

    exit_code = ExitCode.FAILED


class UsageError(TraceSqlError):
    """An option, name or profile key that does not exist or contradicts another."""

    exit_code = ExitCode.USAGE


class BadInputError(TraceSqlError):
    """A file that is not a readable trace or config; the message names file and byte."""

    exit_code = ExitCode.BAD_INPUT


class NotATraceError(BadInputError):
    """Well-formed JSON that is no trace: skipped in a folder, an error where it was named."""


class LossyError(TraceSqlError):
    """A file that cannot be read without loss, where none is allowed."""

    exit_code = ExitCode.LOSSY


class EmptyInputError(TraceSqlError):
    """A readable trace without device activity."""

    exit_code = ExitCode.EMPTY


class RefusedError(TraceSqlError):
    """An ambiguous or inconsistent trace; the message holds counts, residue and readings."""

    exit_code = ExitCode.REFUSED
