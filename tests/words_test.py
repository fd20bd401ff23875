# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that docstrings, helps and comments of the package name their subject.

`house.texts` finds the texts. To list what is wrong in some files:
python tests/words_test.py scalable_agent/vtrace.py ...
"""

import pathlib
import sys

from absl.testing import absltest

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / 'benchmarks'))
import house

# A text begins with its subject. These words hide the subject.
_HEADLESS = frozenset(('What', 'Those', 'That', 'Others', 'It'))
_MAX_PRONOUNS_PER_100_WORDS = 1.5
# A module of a few lines may have as many.
_MIN_PRONOUNS = 2


def _headless(texts):
  return [text for text in texts
          if text.text.partition(' ')[0].strip('.,:') in _HEADLESS]


def _problems(path):
  texts = house.texts(path)
  found = [f'{path}:{text.line}: begins without a noun: {text.text[:60]}'
           for text in _headless(texts)]
  pronouns, num_words = house.pronouns(texts)
  allowed = max(_MIN_PRONOUNS, _MAX_PRONOUNS_PER_100_WORDS * num_words / 100)
  if len(pronouns) > allowed:
    found.append(
        f'{path}: {len(pronouns)} pronouns in {num_words} words, '
        f'{int(allowed)} may be, in lines '
        + ', '.join(str(text.line) for text in pronouns))
  return found


class WordsTest(absltest.TestCase):

  def test_texts_name_their_subject(self):
    self.assertEmpty([
        problem for path in house.modules(_ROOT).values()
        for problem in _problems(path)])


class TextsTest(absltest.TestCase):
  """Tests of `house.texts` and `house.pronouns`."""

  def test_texts_and_pronouns(self):
    path = pathlib.Path(self.create_tempdir().full_path) / 'a.py'
    path.write_text('''# Copyright 2026 The Authors.
"""Module."""
X = setting(1, 'Those of '
            'a setting.')
parser.add_argument('--x', help='Others')
# A comment
# of two lines, and it goes on.
def f():  # It ends a line.
  """What it makes.

  Args:
    x: `it` and its value.
  """
''')
    texts = house.texts(path)
    self.assertEqual(
        [(text.line, text.text) for text in texts],
        [(2, 'Module.'), (3, 'Those of a setting.'), (5, 'Others'),
         (6, 'A comment of two lines, and it goes on.'),
         (8, 'It ends a line.'),
         (9, 'What it makes. Args: x: `it` and its value.')])
    pronouns, num_words = house.pronouns(texts)
    self.assertEqual([text.line for text in pronouns], [3, 5, 6, 8, 9, 9])
    self.assertEqual(num_words, 1 + 4 + 1 + 9 + 4 + 9)
    self.assertLen(_headless(texts), 4)


if __name__ == '__main__':
  if sys.argv[1:] and not sys.argv[1].startswith('-'):
    for name in sys.argv[1:]:
      print(*_problems(pathlib.Path(name)), sep='\n')
  else:
    absltest.main()
