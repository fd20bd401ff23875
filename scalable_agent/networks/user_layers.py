# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Checks of layers that functions of users make, for --agent and --core."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import weakref

from scalable_agent import errors
from scalable_agent.experience import structs
import tensorflow as tf

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

  def named(*args: structs.Nest) -> structs.Nest:
    # In the outermost scope, TensorFlow refuses names such as that of _Net.
    with tf.name_scope(part):
      return layer(*args)

  outputs, who = named(*inputs), f'The {part} of {name}'
  _check(layer, who, name, flag)
  if not tf.config.functions_run_eagerly():  # For a debugger.
    _check_graph(named, layer.variables, who, inputs)
  return outputs


def _check_graph(function: Callable[..., structs.Nest],
                 known: Iterable[tf.keras.Variable], who: str,
                 inputs: Sequence[structs.Nest]) -> None:
  """Compiles for any batch size; ConfigError for variables not `known`."""
  specs = tf.nest.map_structure(
      lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), inputs)
  compiled = tf.function(
      function, autograph=False).get_concrete_function(*specs)
  own = {(v if isinstance(v, tf.Variable) else v.value).ref() for v in known}
  for variable in compiled.variables:
    if variable.ref() not in own:
      raise errors.ConfigError(
          f'{who} uses a tf.Variable of the shape '
          f'{variable.shape.as_list()} that Keras does not know: the variable '
          'would be neither learned nor saved. Make weights with add_weight '
          '(for fixed numbers, trainable=False), or of Keras layers in '
          'attributes.')


def _check(layer: tf.keras.layers.Layer, who: str, name: str,
           flag: str) -> None:
  """Does the checks of `call` that need no graph."""
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


def resources(layer: tf.keras.layers.Layer
              ) -> list[tf.saved_model.experimental.TrackableResource]:
  """Returns the tables of a layer, and of all layers in the layer."""
  return [part for part in _parts(layer) if isinstance(
      part, tf.saved_model.experimental.TrackableResource)]


def _with_sublayers(
    layer: tf.keras.layers.Layer) -> list[tf.keras.layers.Layer]:
  """Returns a layer and all layers in its attributes, lists and dicts."""
  return [part for part in _parts(layer)
          if isinstance(part, tf.keras.layers.Layer)]


def _parts(layer: tf.keras.layers.Layer) -> list[object]:
  """Returns all values in attributes, lists and dicts of a layer."""
  seen: dict[int, object] = {}
  waiting: list[object] = [layer]
  while waiting:
    value = waiting.pop()
    if id(value) in seen:
      continue
    seen[id(value)] = value
    if isinstance(value, tf.keras.layers.Layer):
      waiting.extend(vars(value).values())
    elif isinstance(value, Mapping):
      waiting.extend(value.values())
    elif isinstance(value, list | tuple):
      waiting.extend(value)  # Wrapped tuples cannot be added.
  return list(seen.values())
