"""A federation within one process: every node is a thread that runs the ClientApp. To try things; nobody is apart here.

It stands where a SuperLink and its SuperNodes would: messages are what they would be, and a node's state is kept from
round to round. A ClientApp that fails is answered with an error, as a SuperNode does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity


class ThreadGrid(Grid):
    """Runs one ClientApp at several nodes at once."""

    def __init__(self, app: ClientApp, nodes: Sequence[Mapping[str, Any]], run_config: Mapping[str, Any]) -> None:
        """No thread is started yet.

        Args:
            app: of all nodes.
            nodes: the settings of each.
            run_config: the settings of the run.
        """
        TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # whoever starts a ServerApp sets them
        self._app = app
        self._contexts = {
            number: Context(1, number, dict(settings), RecordDict(), dict(run_config))
            for number, settings in enumerate(nodes, 1000)
        }

    def get_node_ids(self) -> Iterable[int]:
        """All nodes."""
        return list(self._contexts)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Every node's reply."""
        with ThreadPoolExecutor(len(self._contexts)) as threads:
            return list(threads.map(self._reply, messages))

    def _reply(self, message: Message) -> Message:
        try:
            return self._app(message=message, context=self._contexts[message.metadata.dst_node_id])
        except Exception as error:
            return Message(Error(code=0, reason=f"{type(error)}:<'{error}'>"), reply_to=message)

    # The rest of a grid, which no strategy asks for

    def set_run(self, run: object) -> None:  # noqa: D102
        raise NotImplementedError

    @property
    def run(self) -> Any:  # noqa: D102
        raise NotImplementedError

    def create_message(self, *_: object, **__: object) -> Message:  # noqa: D102
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:  # noqa: D102
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:  # noqa: D102
        raise NotImplementedError
