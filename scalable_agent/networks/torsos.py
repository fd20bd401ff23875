# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Torsos: layers from observations, perhaps with actions, to features.

`N` is a batch, usually `T * B` steps (`T` time, `B` batch), `F` the number of
features. See `layers` on seeds and sublayers.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from scalable_agent import errors
from scalable_agent.experience import nests
from scalable_agent.experience import structs
from scalable_agent.networks import frame_torsos
from scalable_agent.networks import instructions
from scalable_agent.networks import layers
from scalable_agent.networks import user_layers
from scalable_agent.processes import user_code
from scalable_agent.settings import declare
import tensorflow as tf

Observations: TypeAlias = tf.Tensor | dict[str, tf.Tensor]


class MLPTorso(layers.Composite):
  """Dense layers, for vectors and tiny images."""

  def __init__(self, hidden_sizes: Sequence[int] = (64, 64),
               activation: str = 'tanh', seed: layers.Seed = None,
               layer_norm: bool = False):
    """Makes a torso of dense layers with the units `hidden_sizes`.

    `layer_norm` normalises the first layer (Ba et al. 2016, arXiv 1607.06450)
    and applies tanh to the result, with ELU after the later layers instead of
    `activation`: acme's `LayerNormMLP`, except that the epsilon of the
    normalisation is Keras', 0.001.
    """
    super().__init__()
    if not layer_norm:
      self._dense_layers = tuple(
          layers.dense(size, activation, seed) for size in hidden_sizes)
      return
    first, *later = hidden_sizes
    self._dense_layers = (
        layers.dense(first, None, seed),
        tf.keras.layers.LayerNormalization(),
        tf.keras.layers.Activation('tanh'),
        *(layers.dense(size, 'elu', seed) for size in later))

  def product(self, observations: tf.Tensor) -> layers.Product:
    """Returns the product `[N, hidden_sizes[0]]`, for `call` with actions.

    One product of large observations serves several actions, and the gradient
    of actions needs no gradient of observations.
    """
    x = layers.to_float(observations, self.compute_dtype)
    kernel = self._dense_layers[0].kernel[:x.shape[-1]]
    return layers.Product(x @ tf.cast(kernel, self.compute_dtype))

  def call(self, observations: Observations | layers.Product,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes features `[N, hidden_sizes[-1]]`.

    Observations are `[N, ...]`, or a dictionary of such arrays. Arrays of uint8
    are divided by 255, other types are not. `actions`, float32 `[N, ...]`, are
    an additional input. With observations (or a product) `[N / M, ...]`, row
    `n` belongs to the actions `n`, `n + N / M`, and so on.
    """
    if isinstance(observations, layers.Product):
      assert actions is not None
      return self._after_product(observations.of_observations, actions)
    x = [layers.to_float(layers.flatten(part), self.compute_dtype)
         for part in nests.parts_of(observations).values()]
    if actions is not None:
      num_rows = actions.shape[0]
      if num_rows != x[0].shape[0]:
        x = [tf.tile(part, [num_rows // part.shape[0], 1]) for part in x]
      x.append(tf.cast(actions, self.compute_dtype))
    x = tf.concat(x, axis=-1) if len(x) > 1 else x[0]
    for layer in self._dense_layers:
      x = layer(x)
    return x

  def _after_product(
      self, product: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
    first, *later = self._dense_layers
    kernel = first.kernel[-actions.shape[-1]:]
    of_actions = tf.cast(actions, self.compute_dtype) @ tf.cast(
        kernel, self.compute_dtype) + tf.cast(first.bias, self.compute_dtype)
    sizes = product.shape
    x = tf.reshape(tf.reshape(of_actions, [-1, *sizes]) + product,
                   [-1, sizes[-1]])
    x = first.activation(x)
    for layer in later:
      x = layer(x)
    return x


class PartsTorso(layers.Composite):
  """A torso for each frame, then dense layers for the whole observation."""

  def __init__(self, frame_torsos: Mapping[str, tf.keras.layers.Layer],
               mlp: MLPTorso):
    """Makes a torso.

    Args:
      frame_torsos: a torso for each frame, by the frame's name in the
        dictionary of observations; '' for observations of a single frame.
      mlp: sees the features of frames, all other arrays, and the actions.
    """
    super().__init__()
    self._names = tuple(frame_torsos)
    self._frame_torsos = tuple(frame_torsos.values())
    self._mlp = mlp

  def call(self, observations: Observations,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes features, see `MLPTorso.call`."""
    parts = dict(nests.parts_of(observations))
    for name, torso in zip(self._names, self._frame_torsos, strict=True):
      parts[name] = torso(parts[name])
    return self._mlp(parts, actions)


class JoinedTorso(layers.Composite):
  """A torso for the whole observation, then dense layers with the action."""

  def __init__(self, torso: tf.keras.layers.Layer, mlp: MLPTorso):
    """Makes a torso; `mlp` sees the features of `torso` and the actions."""
    super().__init__()
    self._torso = torso
    self._mlp = mlp

  def call(self, observations: Observations,
           actions: tf.Tensor | None = None) -> tf.Tensor:
    """Computes features, see `MLPTorso.call`."""
    return self._mlp(self._torso(observations), actions)


def make(
    network: str, observation_spec: structs.ObservationSpec,
    seed: tf.keras.random.SeedGenerator, mlp: MLPTorso,
    with_actions: bool = False) -> tf.keras.layers.Layer:
  """Returns the torso called `network`, see `factory.make_agent`.

  The spec of observations has no instructions. `mlp` sees arrays that are not
  frames, and joins several arrays. Raises ConfigError if the network is unknown
  or does not fit the observations.
  """
  parts = nests.parts_of(observation_spec)
  if any(part.dtype == object for part in parts.values()):
    raise errors.ConfigError(
        'Of the observations, only `instruction` can be text: wrap the '
        'environment.')
  if network == 'mlp':
    return mlp
  if ':' in network:
    torso = _make_from_user(network, observation_spec)
    return JoinedTorso(torso, mlp) if with_actions else torso
  if network not in declare.NETWORKS:
    raise errors.ConfigError(f'Unknown agent {network!r}: use --agent= one of '
                             f'{", ".join(declare.NETWORKS)}.')
  frames = {name: frame_torsos.make(network, part.shape, seed)
            for name, part in parts.items() if len(part.shape) == 3}
  if not frames:
    shapes = [part.shape for part in parts.values()]
    raise errors.ConfigError(
        f'--agent={network} needs frames [height, width, channels], but '
        f'observations have shape {", ".join(map(str, shapes))}: use '
        '--agent=mlp.')
  if not isinstance(observation_spec, dict) and not with_actions:
    return frames['']
  return PartsTorso(frames, mlp)


def _make_from_user(
    name: str, observation_spec: structs.ObservationSpec
) -> tf.keras.layers.Layer:
  """Returns the torso from the user's function `name`, after checks."""
  make_torso = user_code.load(name, 'agent')
  with user_code.errors_explained(f'{name} of --agent'):
    torso = user_layers.check_type(
        make_torso(observation_spec), name, 'agent')
    features = user_layers.call(
        torso, 'torso', name, 'agent', zeros([2], observation_spec))
    user_layers.check_features(
        features, f'The torso of {name}', 'observations')
  return torso


def has_dense_layers(network: str, observation_spec: structs.ObservationSpec,
                     critics_see_actions: bool) -> bool:
  """Returns whether any network has the dense layers of `hidden_sizes`.

  See `factory.make_agent` on `network` and `observation_spec`.
  """
  seen, _ = instructions.split(observation_spec)
  return network == 'mlp' or critics_see_actions or (
      ':' not in network and isinstance(seen, dict))


def zeros(
    axes: list[int], spec: structs.ObservationSpec) -> Observations:
  """Returns zeros `[*axes, *shape]` for each array of the spec."""
  if isinstance(spec, dict):
    return {name: zeros(axes, entry) for name, entry in spec.items()}
  return tf.zeros([*axes, *spec.shape], tf.as_dtype(spec.dtype))
