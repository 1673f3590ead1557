"""The command line: declares the commands, and turns faults into one line and an exit code."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from jettison.app import experiment
from jettison.app.compare import compare
from jettison.app.convert import convert
from jettison.app.explain import check, explain
from jettison.app.kafka import kafka
from jettison.app.plan import plan
from jettison.app.run import demo, run
from jettison.app.screen import fault
from jettison.app.simulate import simulate
from jettison.app.top import top
from jettison.errors import JettisonError

_TONES = (
    (r"Input should be a valid number.*", "give a number"),
    (r"Input should be a valid integer.*", "give a whole number"),
    (r"Input should be greater than or equal to (\S+)", r"give \1 or more"),
    (r"Input should be less than or equal to (\S+)", r"give \1 or less"),
)


def _in_our_tone(message: str) -> str:
    """What the reader of the command line says of a value, as other errors say it.

    >>> _in_our_tone("Invalid value for '--most': Input should be greater than or equal to 2")
    "Invalid value for '--most': give 2 or more"
    """
    for theirs, ours in _TONES:
        message = re.sub(theirs, ours, message)
    return message


class OneLineFaults(TyperGroup):
    """One line on stderr; exit code 1 for a fault in a file or a run, 2 for wrong arguments."""

    def main(self, *args: Any, **settings: Any) -> NoReturn:
        try:
            code = super().main(*args, **{**settings, "standalone_mode": False})
        except JettisonError as error:
            fault(str(error))
            code = 1
        except typer.TyperException as error:
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "jettison"
            message = _in_our_tone(error.format_message().rstrip("."))
            fault(f"{message}{'' if message.endswith('?') else '.'} See `{command} --help`.")
            code = error.exit_code
        except typer.Abort:
            code = 1
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(cls=OneLineFaults, pretty_exceptions_enable=False, add_completion=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jettison {version('jettison')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Load shedding for Spark Structured Streaming: results stay fresh in a burst, and say how complete they are.

    A network is declared in a YAML file, or in one of DISSP's query files (.xml). Check it, see what would be shed,
    then run it.

    \b
    jettison check examples/taxi.yaml
    jettison plan examples/taxi.yaml
    jettison run examples/taxi.yaml --for 30
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command in (check, plan, explain, simulate, compare, run, convert, top, demo, kafka):
    app.command()(command)
app.add_typer(experiment.app, name="experiment")

if __name__ == "__main__":
    app(prog_name="jettison")
