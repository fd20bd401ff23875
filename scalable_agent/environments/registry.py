# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Levels that are registered with gymnasium, by gymnasium or a package."""

from collections.abc import Callable, Mapping
import contextlib
import dataclasses
import functools
import importlib
import inspect
import io
import os
from typing import NamedTuple, TypeAlias

import gymnasium
from scalable_agent import errors
from scalable_agent.environments import arguments
from scalable_agent.environments import base
from scalable_agent.settings.environment_settings import EnvironmentSettings

Spec: TypeAlias = gymnasium.envs.registration.EnvSpec


class Package(NamedTuple):
  """A package that levels need.

  Attributes:
    name: the name of the package, for errors.
    module: the module to import, which may register levels.
    extra: the extra of this project that installs the package.
    prefixes: beginnings of the ids of the package's levels, in lower case.
    hides_stderr: whether texts that the import prints are hidden.
  """
  name: str
  module: str
  extra: str
  prefixes: tuple[str, ...] = ()
  hides_stderr: bool = False

  def is_level(self, level_name: str) -> bool:
    """Whether a name, perhaps `module:id`, means a level of the package."""
    module = level_name.rpartition(':')[0].partition('.')[0]
    return self.has_prefix(level_name) and (
        module in ('', self.module.partition('.')[0]))

  def has_prefix(self, level_name: str) -> bool:
    """Whether an id, also in a user's module, begins like the package's ids."""
    return level_name.rpartition(':')[2].lower().startswith(self.prefixes)

  def known_levels(self) -> list[str]:
    """Returns the names of levels, for errors."""
    return list(filter(self.is_level, gymnasium.registry))

  def load(self) -> None:
    """Imports the package."""
    with (contextlib.redirect_stderr(io.StringIO()) if self.hides_stderr
          else contextlib.nullcontext()):
      importlib.import_module(self.module)

  def check(self, level_name: str) -> None:
    """Imports the package; MissingDependencyError if not installed."""
    try:
      self.load()
    except ImportError as e:
      raise errors.MissingDependencyError(
          f'{level_name} needs {self.name}: '
          f'pip install "scalable_agent[{self.extra}]" ({e}).') from e

  def make(self, factory: base.Factory) -> gymnasium.Env:
    """Makes an environment; hides the texts of the import also in a worker."""
    self.load()  # Before gymnasium imports the package.
    return factory()

  def look_up(self, level_name: str,
              settings: EnvironmentSettings) -> Spec:
    """Returns gymnasium's spec of a level; imports the package for its own."""
    if self.is_level(level_name):
      self.check(level_name)
    return look_up(level_name, settings)


def look_up(level_name: str, settings: EnvironmentSettings) -> Spec:
  """Returns gymnasium's spec of a level.

  `module:id` first imports the module, which registers the id. `settings`
  decide whether `render` returns pictures, if the level can.

  Raises:
    errors.MissingDependencyError: the module cannot be imported.
    errors.UnknownLevelError: no such id is registered, or `module` is a path.
  """
  module, _, env_id = level_name.rpartition(':')
  if module.startswith('.') or module.endswith('.py') or '/' in module:
    name = os.path.basename(module).removesuffix('.py').lstrip('.')
    raise errors.UnknownLevelError(
        f'{level_name} does not name a module: write {name}:{env_id}, and '
        'start the program in the directory of the file.')
  try:
    if module:
      importlib.import_module(module)
    try:
      spec = gymnasium.spec(env_id)
    except gymnasium.error.Error as e:
      raise base.unknown_level(level_name, gymnasium.registry) from e
    return _with_pictures(spec) if settings.needs_pictures else spec
  except ImportError as e:
    raise errors.MissingDependencyError(
        f'The module of level {level_name} {errors.of_import(e, module)}'
    ) from e


def creator(spec: Spec) -> Callable[..., gymnasium.Env]:
  """Returns the class or function that makes the environments of a level."""
  return gymnasium.envs.registration.load_env_creator(
      spec.entry_point) if isinstance(spec.entry_point, str) else (
          spec.entry_point)


def takes(make: Callable[..., gymnasium.Env], name: str) -> bool:
  """Whether a function of a user takes an argument of a name."""
  return any(argument.name == name or argument.kind is argument.VAR_KEYWORD
             for argument in inspect.signature(make).parameters.values())


def _with_pictures(spec: Spec) -> Spec:
  """Returns a spec with `render_mode='rgb_array'`, if the level has this."""
  make = creator(spec)
  metadata = getattr(make, 'metadata', None)
  if metadata is None:  # A function, not a class: look at the arguments.
    can_render = takes(make, 'render_mode')
  else:
    can_render = 'rgb_array' in metadata.get('render_modes', ())
  if not can_render:
    return spec
  return dataclasses.replace(
      spec, kwargs={**spec.kwargs, 'render_mode': 'rgb_array'})


def factory(spec: Spec, settings: EnvironmentSettings) -> base.Factory:
  """Returns a factory of environments that repeat each action."""
  # Workers receive the spec, so only the parent must have registered the level.
  return functools.partial(
      _make, spec, settings.kwargs, settings.num_action_repeats)


def _make(spec: Spec, kwargs: Mapping[str, object],
          num_action_repeats: int) -> gymnasium.Env:
  return base.ActionRepeat(make(spec, kwargs), num_action_repeats)


def make(spec: Spec, kwargs: Mapping[str, object]) -> gymnasium.Env:
  """Makes an environment with the arguments of `environment_kwargs`.

  Raises:
    errors.EnvironmentSpecError: the level does not take an argument, or makes
      no gymnasium.Env.
  """
  # Only videos need pictures, and the level's own `render_mode` is theirs.
  arguments.check_none(spec.id, {
      name: kwargs[name] for name in ('render_mode',) if name in kwargs})
  try:
    return arguments.call(
        spec.id, functools.partial(gymnasium.make, spec), kwargs)
  except TypeError as e:
    if 'must inherit from the gymnasium.Env class' in str(e):
      raise errors.EnvironmentSpecError(
          f'{spec.id} makes {str(e).partition("class: ")[2].partition(". ")[0]}'
          ', which is no gymnasium.Env. Make one environment of a class that '
          'inherits from gymnasium.Env, and no vector of environments: '
          '--num_actors sets how many there are.') from e
    # A function may hand all arguments to an environment without pictures.
    others = {name: value for name, value in spec.kwargs.items()
              if name != 'render_mode'}
    if spec.kwargs == others or "argument 'render_mode'" not in str(e):
      raise
    return make(dataclasses.replace(spec, kwargs=others), kwargs)
