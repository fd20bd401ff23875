# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests that the mutations of `mutations.py` can be made in today's code."""

from absl.testing import absltest
import mutations


class MutationTableTest(absltest.TestCase):

  def test_every_mutation_can_be_made(self):
    found = mutations.mutations('')  # Raises if a text is not there once.
    names = [mutation.name for mutation in found]
    self.assertLen(set(names), len(names))
    self.assertGreater(len(names), 300)


if __name__ == '__main__':
  absltest.main()
