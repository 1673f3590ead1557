"""Every error that Jettison raises on purpose. Each message names the element, its value and what to do."""

_ADVICE = "start with a new checkpoint"
_WHOLE_ADVICE = f"{_ADVICE} and new paths for parquet sinks"


class JettisonError(Exception):
    """Base of all errors of Jettison.

    Where a run cannot go on, its new checkpoint begins with batch 0 again, and a parquet folder belongs to the run that
    has written there. So the advice always names both:

    >>> print(CheckpointError("declare it as it was, or start with a new checkpoint."))
    declare it as it was, or start with a new checkpoint and new paths for parquet sinks.
    """

    def __init__(self, *parts: object) -> None:
        super().__init__(*(_with_paths(each) if isinstance(each, str) else each for each in parts))


class NetworkError(JettisonError, ValueError):
    """A declaration that cannot be right: a network, its quality of service, its rates or its YAML."""


class UnknownNameError(NetworkError, AttributeError):
    """A stream or a network was asked for something that it does not have."""


class StartError(JettisonError):
    """The network is sound, but cannot start: a missing source or sink, columns that do not fit, an option."""


class CheckpointError(JettisonError):
    """A checkpoint folder that this run must not use: of another network, with another schema, or in use."""


class PlanError(JettisonError):
    """A plan that fails its certificate. Never expected: it names the broken rule."""


class SourceError(JettisonError):
    """A source failed while the network ran."""


class SinkError(JettisonError):
    """The sink of an output failed; the batch is not committed and will be repeated by the next start."""


class OperatorError(JettisonError):
    """A function of an operator fails on so many rows that it is wrong, not they."""


class SessionError(JettisonError):
    """The Spark session, or the driver's JVM, ended before the run did."""


def _with_paths(message: str) -> str:
    return message if _WHOLE_ADVICE in message else message.replace(_ADVICE, _WHOLE_ADVICE)
