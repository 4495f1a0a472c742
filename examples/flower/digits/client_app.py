"""One client: it trains the model on its own digits, and finds the aggregate with the others.

Where it is run without a charter it replies with its update, as Flower's FedAvg wants it: the server sees it.
"""

from __future__ import annotations

from pathlib import Path

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from digits.model import client_examples, poison, poisoned, train
from midst.federated import Client
from midst.federated.flower import reply_with_aggregate

app = ClientApp()


@app.train()
def answer(message: Message, context: Context) -> Message:
    """Train, and reply."""
    own, run = context.node_config, context.run_config
    number, clients = int(own["number"]), int(run["clients"])
    model = {name: array.numpy() for name, array in message.content["arrays"].items()}
    examples = client_examples(number, clients)
    trained = train(model, examples)
    if run["poisoned"] and number in poisoned(clients):
        trained = poison(model, trained)
    update = ArrayRecord({name: Array(array) for name, array in trained.items()})
    metrics = {"num-examples": len(examples[1])}
    if not run["charter"]:
        return Message(RecordDict({"arrays": update, "metrics": MetricRecord(metrics)}), reply_to=message)
    folder, charter, name = Path(str(own["folder"])), Path(str(run["charter"])), f"client{number}"
    with Client(charter, name, folder / f"{name}.key", state=folder / charter.stem) as client:
        return reply_with_aggregate(message, update, client, metrics)
