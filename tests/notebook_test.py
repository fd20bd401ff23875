# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that the notebook is valid, and that its commands are commands."""

import ast
import json
import pathlib
import re
import shlex

from absl.testing import absltest
from scalable_agent import experiment
from scalable_agent import zoo

_PATH = (pathlib.Path(__file__).resolve().parent.parent / 'notebooks'
         / 'scalable_agent_colab.ipynb')
_COMMAND = '!scalable-agent '


class NotebookTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.notebook = json.loads(_PATH.read_text(encoding='utf-8'))
    self.cells = [''.join(cell['source']) for cell in self.notebook['cells']
                  if cell['cell_type'] == 'code']

  def test_form(self):
    self.assertEqual(self.notebook['nbformat'], 4)
    for cell in self.notebook['cells']:
      self.assertIn(cell['cell_type'], ('code', 'markdown'))
      self.assertFalse(cell.get('outputs'), 'Outputs belong to one machine.')

  def test_commands_are_those_of_the_program(self):
    modes = []
    for line in '\n'.join(self.cells).replace('\\\n', ' ').splitlines():
      if line.startswith(_COMMAND):
        flags = line.removeprefix(_COMMAND).replace('{FRAMES}', '4000000')
        is_training = '--recipe' in flags
        self.assertEqual(flags.endswith(' | cat'), is_training,
                         'Without cat, a panel is drawn again and again.')
        config = experiment.parse(shlex.split(flags.removesuffix(' | cat')))
        zoo.folder(config.logdir)
        modes.append(config.mode)
    self.assertContainsSubset(
        ['selftest', 'train', 'plot', 'video', 'zoo'], modes)

  def test_installs_the_clone(self):
    [place] = re.findall(r'%pip install -q "(.+)\[', self.cells[0])
    self.assertTrue((_PATH.parent / place / 'setup.py').exists())

  def test_files_are_those_of_the_commands(self):
    text = '\n'.join(self.cells)
    directories = {name.replace(':', '_')
                   for name in re.findall(r'--logdir=(\S+)', text)}
    for path in re.findall(r"[(]'([^']+)'", text):
      self.assertIn(path.partition('/')[0], directories)

  def test_python_can_be_parsed(self):
    for cell in self.cells:
      ast.parse(re.sub(r'^[!%](.*\\\n)*.*$', '', cell, flags=re.M))


if __name__ == '__main__':
  absltest.main()
