"""Every error that Jettison raises on purpose. Each message names the element, its value and what to do."""


class JettisonError(Exception):
    """Base of all errors of Jettison."""


class NetworkError(JettisonError, ValueError):
    """A declaration that cannot be right: a network, its quality of service, its rates or its YAML."""


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


class SessionError(JettisonError):
    """The Spark session, or the driver's JVM, ended before the run did."""
