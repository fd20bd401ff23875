# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Example of a user's network, for `--agent=examples.maze_torso:make`.

The network covers the whole board: two convolutions, the second of which sees
all 5x5 cells, and a dense layer. Policy, value and optionally an LSTM follow
the network.
"""

from scalable_agent.experience import structs
import tensorflow as tf


def make(observation_spec: structs.ArraySpec) -> tf.keras.layers.Layer:
  """Returns a torso: boards `[N, 5, 5, 3]` to features `[N, 64]`."""
  conv = lambda channels: tf.keras.layers.Conv2D(
      channels, 3, padding='same', activation='relu')
  return tf.keras.Sequential([
      tf.keras.layers.Input(observation_spec.shape),
      conv(16),
      conv(32),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(64, 'relu'),
  ])


def print_return(num_env_frames: int, values: dict[str, float]) -> None:
  """A hook, for `--hook=examples.maze_torso:print_return`."""
  print(f'After {num_env_frames:,} frames: {values["mean_return"]:.2f}')
