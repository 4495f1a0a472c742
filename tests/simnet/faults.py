"""What goes wrong, and how often."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Faults:
    """Rates and numbers; all zero is a perfect network.

    Attributes:
        loss: share of frames that never arrive.
        duplicates: share of frames that arrive twice.
        delay: the longest a frame takes, in seconds; it is uniform from almost nothing, so that frames overtake others.
        crashes: how many times a participant dies, half of them in the middle of a write to its disk.
        partitions: how many times the network falls into two parts for a while.
        full_disks: how many times a disk is full for a while.
        bit_flips: how many times a participant dies, and a bit of its disk is another when it comes back.
        truncations: how many times a participant dies, and the end of its disk is gone when it comes back.
        lost_syncs: how many times a disk says that something is written that is not, and soon loses its power.
        forgetful: whether a crash takes the disk with it.
    """

    loss: float = 0.0
    duplicates: float = 0.0
    delay: float = 0.01
    crashes: int = 0
    partitions: int = 0
    full_disks: int = 0
    bit_flips: int = 0
    truncations: int = 0
    lost_syncs: int = 0
    forgetful: bool = False

    @property
    def draws_anew(self) -> bool:
        """Whether a disk may forget what was drawn; then a participant that starts again draws other numbers."""
        return self.forgetful or self.bit_flips + self.truncations + self.lost_syncs > 0


NONE = Faults()
ROUGH = Faults(loss=0.3, duplicates=0.1, delay=0.3, crashes=3, partitions=2)
