# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tables and intervals in Markdown that is readable as plain text."""

from collections.abc import Sequence


def interval(ends: tuple[float, float], num_decimals: int) -> str:
  """Returns the ends of an interval as text."""
  return ' to '.join(f'{x:,.{num_decimals}f}' for x in ends)


def table(rows: Sequence[Sequence[str]]) -> str:
  """Returns a table with aligned cells; the first column is left-aligned."""
  widths = [max(map(len, column)) for column in zip(*rows)]
  lines = ['| ' + ' | '.join(
      cell.rjust(width) if i else cell.ljust(width)
      for i, (cell, width) in enumerate(zip(row, widths))) + ' |'
           for row in rows]
  rule = '|' + '|'.join('-' * (width + 1) + (':' if i else '-')
                        for i, width in enumerate(widths)) + '|'
  return '\n'.join([lines[0], rule, *lines[1:]])
