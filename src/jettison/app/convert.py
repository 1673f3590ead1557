"""`jettison convert`: a network from one kind of file to the other, YAML and DISSP's XML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jettison.app.arguments import SpecPath
from jettison.app.situation import load_spec
from jettison.spec.run_section import read_places
from jettison.spec.whole_file import file_yaml
from jettison.spec.xml.as_xml import to_xml
from jettison.spec.xml.reader import is_query_folder


def convert(
    spec: SpecPath,
    target: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file to write. Without it, print the text.")
    ] = None,
) -> None:
    """Turn one of DISSP's query files (.xml), or a folder of them, into YAML, and YAML into XML. Needs no Spark.

    The network, its `run` and its `profile` stay as they are; comments are left out. What XML has no words for is
    refused by name.

    \b
    jettison convert examples/average.xml
    jettison convert examples/average.xml --out average.yaml
    """
    read, graph = load_spec(spec)
    if read.run is not None:
        read_places(read, graph)
    from_xml = is_query_folder(spec) or spec.suffix.lower() == ".xml"
    text = file_yaml(read) if from_xml else to_xml(read)
    if target is None:
        typer.echo(text, nl=False)
        return
    if target.exists():
        raise typer.BadParameter(f"--out {str(target)!r} is there already: remove it, or give another name.")
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"--out {str(target)!r} cannot be written: {error.strerror}.") from error
