"""`python -m jettison`: the command line."""

from jettison.app.cli import app

if __name__ == "__main__":
    app(prog_name="jettison")
