# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Checks of layers that functions of users make, for --agent and --core."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
import weakref

from scalable_agent import errors
from scalable_agent.experience import structs
import tensorflow as tf

T = TypeVar('T')

# The variables of users' layers, as long as they exist.
_variables: weakref.WeakValueDictionary[int, tf.Variable] = (
    weakref.WeakValueDictionary())

# Layers that learn only where Keras trains a model.
_OF_TRAINING = (tf.keras.layers.BatchNormalization,
                tf.keras.layers.SpectralNormalization)
_NOISE = (tf.keras.layers.Dropout, tf.keras.layers.AlphaDropout,
          tf.keras.layers.GaussianDropout, tf.keras.layers.GaussianNoise)


def check_type(layer: object, name: str, flag: str) -> tf.keras.layers.Layer:
  """Returns what the function `name` of `flag` made; raises ConfigError."""
  if isinstance(layer, tf.keras.layers.Layer):
    return layer
  raise errors.ConfigError(
      f'{name} of --{flag} must return a Keras layer or model, not '
      f'{type(layer).__name__}.')


def watched(function: Callable[[], T]) -> tuple[T, Sequence[tf.Variable]]:
  """Returns the result, and the trainable variables that `function` reads."""
  with tf.GradientTape() as tape:
    result = function()
  return result, tape.watched_variables()


def call(layer: tf.keras.layers.Layer, part: str, name: str, flag: str,
         *inputs: structs.Nest) -> structs.Nest:
  """Makes the variables of a layer; returns the outputs for `inputs`.

  Args:
    layer: a layer. Frozen layers within are allowed, except random changes of
      pictures.
    part: the part of the agent, such as `torso`.
    name: the function that made the layer.
    flag: the setting with the function.
    *inputs: the arguments of the layer, for a batch of two.

  Raises ConfigError for a layer that cannot be learned here, and errors of a
  layer that cannot be compiled for batches of any size.
  """
  outputs, variables = watched(lambda: layer(*inputs))
  _check(layer, f'The {part} of {name}', name, flag, variables)

  def named(*args: structs.Nest) -> structs.Nest:
    with tf.name_scope(part):  # As in an agent: layers may have any name.
      return layer(*args)

  tf.function(named, autograph=False).get_concrete_function(
      *tf.nest.map_structure(
          lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), inputs))
  return outputs


def _check(layer: tf.keras.layers.Layer, who: str, name: str, flag: str,
           variables: Sequence[tf.Variable]) -> None:
  """Does the checks of `call`; `variables` are those that the layer reads."""
  for inner in _with_sublayers(layer):
    if isinstance(getattr(inner, 'generator', None),
                  tf.keras.random.SeedGenerator):
      raise errors.ConfigError(
          f'{who} has {inner.name}, a {type(inner).__name__}, '
          'which changes observations at random: remove the layer.')
    if inner.trainable and (
        isinstance(inner, _OF_TRAINING) or _is_noisy(inner)):
      raise errors.ConfigError(
          f'{who} has {inner.name}, a {type(inner).__name__}, '
          'which cannot learn here: single steps and unrolls must have equal '
          'features. Leave the layer out, use LayerNormalization, or freeze a '
          'pretrained layer with trainable=False.')
  if layer.losses:
    raise errors.ConfigError(
        f'{who} has losses, of a regularizer or add_loss, which '
        'are not learned: leave the losses out, and compute them in a term of '
        '--addon.')
  for variable in layer.trainable_variables:
    if variable.dtype != 'float32':
      raise errors.ConfigError(
          f'{who} has weights of {variable.dtype} '
          f'({variable.path}), but weights must be float32.')
  _, own = watched(lambda: [
      tf.convert_to_tensor(v) for v in layer.variables])
  own_refs = {v.ref() for v in own}
  for variable in variables:
    if variable.ref() not in own_refs:
      raise errors.ConfigError(
          f'{who} uses a tf.Variable of the shape {variable.shape.as_list()} '
          'that Keras does not know: the variable would be neither learned nor '
          'saved. Make weights with add_weight, or of Keras layers in '
          'attributes.')
  for variable in layer.variables:
    if id(variable) in _variables:
      raise errors.ConfigError(
          f'{name} of --{flag} must return a new layer at each call: actors '
          'and learner would share the weights of this layer.')
  _variables.update({id(v): v for v in layer.variables})


def check_features(features: tf.Tensor, what: str, inputs: str) -> None:
  """Raises ConfigError unless features are float `[2, F]`.

  The error says that `what` must put out such features for 2 `inputs`.
  """
  if tf.is_tensor(features):
    if (len(features.shape) == 2 and features.shape[0] == 2
        and features.shape[1] and features.dtype.is_floating):
      return
    found = f'{features.dtype.name} {list(features.shape)}'
  else:
    found = type(features).__name__
  raise errors.ConfigError(
      f'{what} must put out features, float [2, F], for 2 {inputs}, not '
      f'{found}.')


def _is_noisy(layer: tf.keras.layers.Layer) -> bool:
  """Returns whether a layer has dropout or noise of more than 0."""
  names = (('rate', 'stddev') if isinstance(layer, _NOISE) else
           ('dropout', 'recurrent_dropout'))  # Of recurrent layers.
  amounts = [getattr(layer, name, 0) for name in names]
  return any(isinstance(x, int | float) and x > 0 for x in amounts)


def _with_sublayers(
    layer: tf.keras.layers.Layer) -> list[tf.keras.layers.Layer]:
  """Returns a layer and all layers in its attributes, lists and dicts."""
  found: list[tf.keras.layers.Layer] = []
  seen: set[int] = set()
  waiting: list[object] = [layer]
  while waiting:
    value = waiting.pop()
    if id(value) in seen:
      continue
    seen.add(id(value))
    if isinstance(value, tf.keras.layers.Layer):
      found.append(value)
      waiting += vars(value).values()
    elif isinstance(value, Mapping):
      waiting += value.values()
    elif isinstance(value, list | tuple):
      waiting += value
  return found
