"""When a crashed part is started again, and when we give up."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass
class RestartPolicy:
    """Back-off that doubles with every crash inside the window; too many crashes inside it and we give up.

    Times are seconds of a monotonic clock, passed in.
    """

    first_s: float = 0.5
    most_s: float = 15.0
    window_s: float = 120.0
    max_crashes: int = 5
    _crashes: deque[float] = field(default_factory=deque)

    def crashed(self, now: float) -> float | None:
        """Note a crash. Seconds to wait before the next start, or None to give up."""
        self._crashes.append(now)
        while self._crashes[0] < now - self.window_s:
            self._crashes.popleft()
        if len(self._crashes) > self.max_crashes:
            return None
        return min(self.most_s, self.first_s * 2.0 ** (len(self._crashes) - 1))
