"""Runs Flink SQL in a process of its own, with the Python that has PyFlink: nothing of Jettison is imported here.

It reads one JSON object per line from its input and answers each with one line. `run` executes a job to its end and
says how long it took; `start` begins one and returns at once; `status` says how that one is, `stop` cancels it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints, Flink's JVM included, must not be taken for an answer
    running: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer: dict[str, Any] = {}
            if asked["do"] == "stop":
                running.get_job_client().cancel().result()
            elif asked["do"] == "status":
                answer = {"status": running.get_job_client().get_job_status().result().name}
            else:
                running = _submit(asked)
                if asked["do"] == "run":
                    running.wait()
                    result = running.get_job_client().get_job_execution_result().result()
                    answer = {"seconds": result.get_net_runtime() / 1000}
        except Exception as error:
            answer = {"fault": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def _submit(asked: dict[str, Any]) -> Any:
    """One job: all INSERTs share their sources."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in asked["settings"].items():
        environment.get_config().set(name, value)
    for statement in asked["tables"]:
        environment.execute_sql(statement)
    statements = environment.create_statement_set()
    for statement in asked["inserts"]:
        statements.add_insert_sql(statement)
    return statements.execute()


if __name__ == "__main__":
    main()
