# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Shows the progress of a run as a panel at the end of a terminal."""

from collections.abc import Mapping
import datetime
import math
import sys

import rich.console
import rich.live
import rich.panel
import rich.progress_bar
import rich.table
from scalable_agent.runs import metrics

_BARS = '▁▂▃▄▅▆▇█'
_MAX_POINTS = 60


def make(title: str) -> 'Panel | None':
  """Returns a panel; None if the output is not a terminal that can show one."""
  # Notebooks set FORCE_COLOR, which makes a terminal of each output for rich.
  if not sys.stdout.isatty():
    return None
  console = rich.console.Console()
  if not console.is_terminal or console.is_dumb_terminal:
    return None
  try:
    # `console.encoding` of rich 13 is utf-8. A program's own output has none.
    _BARS.encode(getattr(sys.stdout, 'encoding', None) or 'utf-8')
  except UnicodeEncodeError:
    return None
  return Panel(title, console)


class Panel:
  """A panel below all printed lines; `close` leaves the last state there."""

  def __init__(self, title: str, console: rich.console.Console):
    """Shows nothing yet."""
    self._title = title
    # Only `update` draws, so no thread is needed.
    self._live = rich.live.Live(console=console, auto_refresh=False)
    self._returns: list[float] = []
    self._num_seen = 0
    self._every = 1

  def update(self, measured: metrics.Measured,
             time_shares: Mapping[str, float], elapsed_s: float,
             evaluated: str = '', more: str = '') -> None:
    """Draws the panel.

    Args:
      time_shares: the shares of its time that a role spends in a stage, by
        `role/stage`.
      elapsed_s: seconds trained, in all parts of the run.
      evaluated: the last evaluation, in words.
      more: another line.
    """
    if not self._live.is_started:
      self._live.start()
      # A killed program must not leave a terminal without a cursor.
      self._live.console.show_cursor(True)
    self._remember(measured.mean_return)
    table = rich.table.Table.grid(padding=(0, 2))
    table.add_row('frames', f'{measured.num_env_frames:,} of '
                  f'{measured.total:,} ({100 * measured.share:.1f} %)')
    table.add_row('', rich.progress_bar.ProgressBar(
        completed=min(measured.share, 1), total=1, width=_MAX_POINTS))
    table.add_row('speed', f'{measured.frames_per_s:,.0f} frames/s, '
                  f'ETA {measured.eta}')
    table.add_row('elapsed', str(datetime.timedelta(seconds=int(elapsed_s))))
    table.add_row('return', measured.return_text.removeprefix('return '))
    if len(self._returns) > 1:
      table.add_row('', sparkline(self._returns) + f'  {min(self._returns):.4g}'
                    f' to {max(self._returns):.4g}')
    if evaluated:
      table.add_row('evaluation', evaluated)
    table.add_row('policy lag', f'{measured.policy_lag:.1f} updates')
    for role, stages in _by_role(time_shares).items():
      table.add_row(role, stages)
    if more:
      table.add_row('', more)
    self._live.update(
        rich.panel.Panel(table, title=self._title, expand=False), refresh=True)

  def close(self) -> None:
    """Stops drawing; may be called again."""
    self._live.stop()

  def _remember(self, mean_return: float) -> None:
    """Keeps the return; in long runs, every second, every fourth return, ..."""
    if not math.isfinite(mean_return):
      return
    self._num_seen += 1
    if self._num_seen % self._every == 0:
      self._returns.append(mean_return)
    if len(self._returns) > _MAX_POINTS:
      self._returns = self._returns[1::2]
      self._every *= 2


def sparkline(values: list[float]) -> str:
  """Returns bars with the values as heights, from the least to the most."""
  least, most = min(values), max(values)
  scale = (len(_BARS) - 1) / ((most - least) or 1)
  return ''.join(_BARS[round((value - least) * scale)] for value in values)


def _by_role(time_shares: Mapping[str, float]) -> dict[str, str]:
  """Returns a line of the stages of each role, in an order that stays."""
  stages: dict[str, list[tuple[str, float]]] = {}
  for name, share in time_shares.items():
    role, _, stage = name.partition('/')
    stages.setdefault(role, []).append((stage, share))
  return {role: ', '.join(
      f'{stage} {100 * share:.0f} %' for stage, share in sorted(entries)
      if share >= .005) for role, entries in sorted(stages.items())}
