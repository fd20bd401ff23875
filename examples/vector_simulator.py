# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""A training with a simulator that steps many environments at once.

  python examples/vector_simulator.py

Environments step in threads of this process, without processes of their own.
Only programs that call `register` know the level `my_simulator`.
"""

import gymnasium
import scalable_agent
from scalable_agent import environments
from scalable_agent.environments import from_gymnasium


class Levels:
  """The family of the level `my_simulator`; see `environments.Levels`."""

  def is_level(self, level_name):
    return level_name == 'my_simulator'

  def known_levels(self):
    return ['my_simulator']

  def look_up(self, level_name, settings):
    del settings
    return level_name  # A text: no environment gets a process.


class Vector(from_gymnasium.WrappedVector):
  """`E` environments of a `gymnasium.vector.VectorEnv`."""

  def __init__(self, level_names, parts, seeds, settings, num_threads):
    del parts, settings, num_threads
    self._vector = gymnasium.make_vec(  # Your simulator.
        'CartPole-v1', len(seeds), vectorization_mode='vector_entry_point')
    super().__init__(self._vector, level_names[0], seeds[0])

  def close(self):
    self._vector.close()


def register():
  """Makes `my_simulator` a level of this program."""
  environments.FAMILIES = (
      environments.Family(Levels(), 'levels of my simulator', Vector),
      *environments.FAMILIES)


if __name__ == '__main__':
  register()
  agent = scalable_agent.train(scalable_agent.Config.from_recipe(
      'cartpole', level_name='my_simulator', logdir='/tmp/my_simulator',
      num_actors=64, environments_per_process=1,
      total_environment_frames=100_000))
  print(agent.play(num_episodes=8))
