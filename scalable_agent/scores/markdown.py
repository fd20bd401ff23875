# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Markdown that is readable as plain text, and its page of HTML."""

import base64
from collections.abc import Iterator, Sequence
import html
import itertools
import pathlib
import re


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


def to_html(text: str, pictures: Sequence[str]) -> str:
  """Returns a page that needs no other file, with PNG pictures at the end.

  `text` has headings, tables, lists and paragraphs, separated by empty lines.
  """
  parts = [part for block in text.strip().split('\n\n')
           for part in _html_block(block.splitlines())]
  for path in pictures:
    data = base64.b64encode(pathlib.Path(path).read_bytes()).decode()
    parts.append(f'<img alt="{html.escape(pathlib.Path(path).stem)}" '
                 f'src="data:image/png;base64,{data}">')
  title = html.escape(text.partition('\n')[0].lstrip('# '))
  return (f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8">'
          f'<title>{title}</title>\n<style>{_STYLE}</style>\n'
          + '\n'.join(parts) + '\n</html>\n')


_STYLE = (
    'body{font-family:sans-serif;max-width:75em;margin:2em auto}'
    'table{border-collapse:collapse;display:block;overflow-x:auto}'
    'td,th{padding:.2em .7em;border-bottom:1px solid #ddd;text-align:right}'
    'td:first-child,th:first-child{text-align:left}img{max-width:100%}')


def _html_block(lines: Sequence[str]) -> Iterator[str]:
  """Yields the elements of lines without an empty line among the lines."""
  kinds = itertools.groupby(lines, lambda line: (
      'table' if line.startswith('|') else
      'ul' if re.match(r'- |\d+\. ', line) else 'p'))
  for kind, group in kinds:
    found = list(group)
    level = len(found[0]) - len(found[0].lstrip('#'))
    if kind == 'table':
      rows = [line.strip('|').split('|') for line in found]
      cells = [''.join(f'<{tag}>{_inline(cell.strip())}</{tag}>'
                       for cell in row)
               for tag, row in zip(itertools.chain(['th'], itertools.repeat(
                   'td')), [rows[0], *rows[2:]])]
      yield f'<table>{"".join(f"<tr>{row}</tr>" for row in cells)}</table>'
    elif kind == 'ul':
      yield '<ul>' + ''.join(
          f'<li>{_inline(re.sub("^- ", "", line))}</li>'
          for line in found) + '</ul>'
    elif level:
      yield f'<h{level}>{_inline(found[0].lstrip("# "))}</h{level}>'
    else:
      yield f'<p>{_inline(" ".join(found))}</p>'


def _inline(text: str) -> str:
  text = re.sub(r'\\([*_])', r'\1', html.escape(text))
  return re.sub(r'\*\*(.+?)\*\*', r'<b>\1</b>', text)
