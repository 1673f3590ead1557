"""`jettison kafka`: a broker on this machine, with trips in it, to try things with."""

from __future__ import annotations

import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from jettison.app.screen import err
from jettison.errors import StartError

_FOREVER_S = 1e9


def kafka(
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port on 127.0.0.1.")] = 9092,
    topic: Annotated[
        str, typer.Option(help="The topic that trips are sent to, or several with commas: each gets trips.")
    ] = "trips",
    rate: Annotated[
        float, typer.Option(metavar="ROWS_PER_S", min=0, help="Trips per second and topic. 0 sends none.")
    ] = 2000.0,
) -> None:
    """Start a Kafka broker on this machine and send taxi trips to it, to try things with. Ctrl-C ends both.

    The data is deleted at the end. The first start fetches Kafka from Maven Central.

    \b
    jettison kafka
    jettison run examples/kafka.yaml --for 30     (in another terminal)
    jettison kafka --topic drives_1,drives_2,points
    """
    try:
        from jettison.experiments.kafka.broker import Broker
        from jettison.experiments.kafka.producer import producing
    except ModuleNotFoundError as error:
        raise StartError(f"jettison kafka needs {error.name}: pip install 'jettison[kafka]'.") from error
    from jettison.synthetic.rates import Constant

    for each in (signal.SIGINT, signal.SIGTERM):  # also where a shell that starts it in the background ignores SIGINT
        signal.signal(each, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="jettison-kafka-") as name:
        with err.status("starting Kafka (the first time its jars are fetched from Maven Central)"):
            broker = Broker(Path(name), port)
            broker.start()
        try:
            topics = [name.strip() for name in topic.split(",")]
            for each_topic in topics:
                broker.create(each_topic)
                typer.echo(f"Kafka listens on {broker.servers}; topic {each_topic!r} has 2 partitions")
            if rate == 0:
                broker.wait()
            typer.echo(f"{rate:,.0f} trips per second go to {topic!r}: try jettison run examples/kafka.yaml --for 30")
            with ExitStack() as sending:
                for each_topic in topics:
                    log = Path(name) / f"sent-{each_topic}"
                    sending.enter_context(producing(broker.servers, each_topic, Constant(rate), _FOREVER_S, log))
                broker.wait()
        except KeyboardInterrupt:
            typer.echo("stopping")
        finally:
            broker.stop()
