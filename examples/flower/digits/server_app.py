"""The server: it hands the model to all clients, twenty times, and measures what comes back on digits that none has."""

from __future__ import annotations

import json
from pathlib import Path

from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from digits.model import accuracy, new_model, test_examples
from midst.federated.flower import AmongClients

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train to the end, and write down how good the model was after each round."""
    run, clients = context.run_config, int(context.run_config["clients"])
    if run["charter"]:
        strategy = AmongClients(clients, fraction_evaluate=0.0)
    else:
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients)
    examples = test_examples()

    def measure(_round: int, arrays: ArrayRecord) -> MetricRecord:
        return MetricRecord({"accuracy": accuracy({name: a.numpy() for name, a in arrays.items()}, examples)})

    first = ArrayRecord({name: Array(array) for name, array in new_model().items()})
    result = strategy.start(grid, first, num_rounds=int(run["rounds"]), evaluate_fn=measure)
    measured = [metrics["accuracy"] for _, metrics in sorted(result.evaluate_metrics_serverapp.items())]
    Path(str(run["accuracies"])).write_text(json.dumps(measured))
