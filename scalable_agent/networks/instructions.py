# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Instructions: words as hash buckets, and an encoder of words.

`N` is a batch, usually `T * B` steps (`T` time, `B` batch), `W` a number of
words.
"""

import collections.abc
from collections.abc import Sequence
import functools

import numpy as np
from scalable_agent.experience import structs
from scalable_agent.networks import layers
from scalable_agent.networks import masks
import tensorflow as tf

_NUM_HASH_BUCKETS = 1000
_EMBEDDING_SIZE = 20
_INSTRUCTION_UNITS = 64
# Padding is embedded as the empty word, as in the reference. Outputs do not
# depend on padding, but sparse optimizers decay the statistics of all rows that
# are looked up.
_EMPTY_WORD = 263
# Instructions are padded to a multiple of this number of words, so that
# compiled functions see few different shapes.
_WORDS_STEP = 8


def split(
    observation: structs.Nest) -> tuple[structs.Nest, structs.Nest | None]:
  """Splits an observation, or its spec, into torso input and instruction.

  A dictionary of one array becomes this array. Parts that are `not_seen`, and a
  mask of actions, see `masks`, are left out.
  """
  if not isinstance(observation, collections.abc.Mapping):
    return observation, None
  hidden = {'instruction', *not_seen(observation)}
  if masks.of(observation) is not None:
    hidden.add(masks.NAME)
  seen = {name: part for name, part in sorted(observation.items())
          if name not in hidden}
  if len(seen) == 1:
    [seen] = seen.values()
  return seen, observation.get('instruction')


def not_seen(observation: collections.abc.Mapping[str, object]) -> set[str]:
  """Returns the names of parts that no agent sees.

  The `achieved_goal` of a goal environment is contained in its `observation`.
  """
  is_twice = {'observation', 'desired_goal'} <= observation.keys()
  return {'achieved_goal'} if is_twice else set()


class InstructionEncoder(tf.keras.layers.Layer):
  """Embeds the words of instructions; a layers.LSTM encodes the embeddings."""

  def __init__(self, seed: layers.Seed = None):
    super().__init__()
    self._initializer = tf.keras.initializers.RandomNormal(
        stddev=1., seed=seed)
    self._lstm = layers.LSTM(_INSTRUCTION_UNITS, seed)

  def build(self, unused_word_ids_shape: Sequence[int]) -> None:
    """Makes the embeddings of all hash buckets."""
    self.embeddings = self.add_weight(
        shape=[_NUM_HASH_BUCKETS, _EMBEDDING_SIZE],
        initializer=self._initializer, name='embeddings')

  def call(self, word_ids: tf.Tensor) -> tf.Tensor:
    """Encodes words, int32 `[N, W]` of `hash_words`, as float32 `[N, 64]`.

    The code is the output of the LSTM at the last word; zeros for instructions
    without words.
    """
    num_words = tf.reduce_sum(tf.cast(word_ids >= 0, tf.int32), axis=-1)
    rows = tf.where(word_ids >= 0, word_ids, _EMPTY_WORD)
    embedded = tf.gather(self.embeddings, tf.transpose(rows))  # [W, N, 20]
    outputs, _ = self._lstm(
        embedded, self._lstm.initial_state(tf.shape(word_ids)[0]))
    # Without words the index is -1, and the one-hot row is zero.
    is_last = tf.one_hot(num_words - 1, tf.shape(word_ids)[1])
    return tf.einsum('nw,wnu->nu', is_last, outputs)


def hash_words(instructions: np.typing.ArrayLike) -> np.ndarray:
  """Replaces the words of instructions, bytes or str `[...]`, by hash buckets.

  Words are separated by spaces; case matters. Call this function outside of
  compiled functions, since symbolic tensors have no words.

  Returns:
    int32 `[..., W]`, buckets within `[0, 1000)`, padded at the end with -1. `W`
    is 1 if no instruction has words, else a multiple of 8, so that compiled
    functions see few shapes.
  """
  instructions = np.asarray(instructions, object)
  rows = [_hash_instruction(x) for x in instructions.ravel()]
  num_words = max(map(len, rows), default=0)
  ids = np.full([len(rows), max(1, -(-num_words // _WORDS_STEP) * _WORDS_STEP)],
                -1, np.int32)
  for i, row in enumerate(rows):
    ids[i, :len(row)] = row
  return ids.reshape(*instructions.shape, ids.shape[1])


def hash_words_in_graph(instructions: tf.Tensor) -> tf.Tensor:
  """Replaces the words of strings `[B]` by hash buckets, in compiled functions.

  The result is int32 `[B, W]`, where `W` is at least 1 and need not be a
  multiple of 8.
  """
  words = tf.strings.split(instructions, ' ')
  words = tf.ragged.boolean_mask(words, words != '')
  ids = tf.ragged.map_flat_values(
      tf.strings.to_hash_bucket_fast, words, _NUM_HASH_BUCKETS)
  ids = tf.cast(ids.to_tensor(-1), tf.int32)
  return tf.pad(ids, [[0, 0], [0, 1]], constant_values=-1)


# Actors see the same instructions, or new ones of the same words, again and
# again, and the hash of a new word takes as long as a policy step.
@functools.lru_cache(maxsize=2**16)
def _hash_instruction(instruction: bytes | str) -> tuple[int, ...]:
  return tuple(_hash_word(word)
               for word in tf.compat.as_bytes(instruction).split(b' ') if word)


@functools.lru_cache(maxsize=2**16)
def _hash_word(word: bytes) -> int:
  return int(tf.strings.to_hash_bucket_fast(word, _NUM_HASH_BUCKETS))
