# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains and tests agents: flags in, checkpoints and scores out.

  python experiment.py --recipe=appo_pong --logdir=/tmp/a
  python experiment.py --mode=check --level_name=my_levels:Corridor-v0
  python experiment.py --logdir=/tmp/a --mode=test
  python experiment.py --logdir=/tmp/a,/tmp/b --mode=table
  python experiment.py --logdir=/tmp/a --mode=plot
  python experiment.py --logdir=/tmp/a --mode=video
  python experiment.py --logdir=/tmp/a --mode=export
  python experiment.py --logdir=/tmp/b --mode=suite --suite=toys --seeds=5

Where the package is installed, `scalable-agent` is the same program, and so is
`python -m scalable_agent`. --help shows the most used flags, --help=sac those
of an algorithm, --helpfull all flags by section. In Python:
`scalable_agent.train(scalable_agent.Config(level_name='CartPole-v1'))`.
"""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import importlib
import importlib.util
import os
import sys
import traceback

from absl import app
from absl import flags
from absl import logging
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent import zoo
from scalable_agent.processes import console
from scalable_agent.processes import signals
from scalable_agent.processes import variables
from scalable_agent.runs import logdirs
from scalable_agent.scores import levels
from scalable_agent.settings import command_help
from scalable_agent.settings import command_line
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import environment_settings
from scalable_agent.settings import lab_levels
from scalable_agent.settings import other_words
from scalable_agent.settings import program
from scalable_agent.settings import recipes
from scalable_agent.settings.suite_settings import OF_SUITES

# Module and function of every mode. The function takes a Config and returns the
# exit code. The module is imported late: main must first set environment
# variables of TensorFlow, and environment processes must not import TensorFlow.
MODES = {'train': ('scalable_agent.runs.training', 'train_as_set'),
         'check': ('scalable_agent.modes.check', 'run'),
         'test': ('scalable_agent.modes.test', 'run'),
         'table': ('scalable_agent.scores.comparing', 'compare'),
         'plot': ('scalable_agent.scores.comparing', 'plot'),
         'video': ('scalable_agent.modes.video', 'run'),
         'export': ('scalable_agent.modes.export', 'run'),
         'suite': ('scalable_agent.modes.suite', 'run'),
         'selftest': ('scalable_agent.modes.selftest', 'run'),
         'zoo': ('scalable_agent.zoo', 'run')}


def config_of(flag_values: flags.FlagValues,
              is_new: bool = False) -> config_lib.Config:
  """Returns the settings in flags; ConfigError if a setting is wrong.

  Modes of a trained agent take the settings of the training run for all flags
  that are not given. A training keeps the reward clipping of the run in
  `--logdir`, unless `is_new`.
  """
  values = flag_values.flag_values_dict()
  if flag_values['recipe'].present:  # Not by `_set`.
    raise errors.ConfigError(
        '--recipe is for the command experiment.py. A program with flags of '
        'its own takes --flagfile=FILE, with a file of '
        'scalable_agent/settings/recipes.')
  if values['mode'] == 'suite':
    return config_lib.Config.from_values(
        {name: values[name] for name in OF_SUITES})
  names = [field.name for field in dataclasses.fields(config_lib.Config)]
  given = {name: values[name] for name in names if flag_values[name].present}
  trained_with = None
  if values['mode'] in program.OF_TRAINED_AGENTS:
    trained_with = config_lib.trained_with(
        zoo.folder(os.path.expanduser(values['logdir'])))
  if trained_with is None:
    if not flag_values['level_name'].present:
      values |= lab_levels.default(values['mode'], values['algorithm'])
    if values['mode'] == 'check' and 'step_timeout_s' not in given:
      values['step_timeout_s'] = environment_settings.CHECK_TIMEOUT_S
    values |= recipes.collection_of(values['recipe'], values)
    with recipes.errors_named(values['recipe'], values['algorithm']):
      config = config_lib.Config.from_values(values)
      config.check_used(given)
    is_kept = not ('reward_clipping' in given or is_new)
    return (config_lib.with_saved_clipping(config)
            if is_kept and config.mode == 'train' else config)
  try:
    return dataclasses.replace(trained_with, logdir=values['logdir'], **{
        name: value for name, value in given.items() if name != 'logdir'})
  except errors.ConfigError as e:
    if not values['recipe']:
      raise
    raise errors.ConfigError(
        f'{e} If the flag is of --recipe={values["recipe"]}, leave the recipe '
        f'out: --mode={values["mode"]} takes the settings of the training.'
    ) from e


def parse(args: Sequence[str]) -> config_lib.Config:
  """Returns the settings in arguments such as `['--batch_size=8', ...]`.

  Files of `--flagfile` are read. The flags of this program do not change.

  Raises:
    ConfigError: if a setting is wrong.
    flags.Error: if there is no such flag, or its value has the wrong type.
  """
  flag_values = flags.FlagValues()
  command_line.define_flags(flag_values)
  _set(flag_values, ['experiment.py', *args])
  return config_of(flag_values)


def _set(flag_values: flags.FlagValues, argv: Sequence[str]) -> list[str]:
  """Sets flags; returns the name of the program, `argv[:1]`.

  Raises the errors of `parse`.
  """
  recipe, args = recipes.with_recipe(argv[1:])
  command_line.check_order(args)
  first, *unknown = flag_values([argv[0], *args])
  if any('\ufeff' in arg for arg in unknown):
    raise errors.ConfigError(
        'A file of --flagfile begins with a byte order mark: save the file as '
        'UTF-8 without one.')
  if unknown:
    raise errors.ConfigError(f'Unknown arguments: {" ".join(unknown)}. Flags '
                             'begin with --; --help lists them.')
  if flag_values['recipe'].present:
    raise errors.ConfigError('--recipe cannot be used in a file of flags.')
  flag_values['recipe'].value = recipe  # For errors; `present` stays 0.
  return [first]


def _parse_flags(argv: Sequence[str]) -> list[str]:
  """Sets the flags; ends the program with a line if a flag is wrong."""
  try:
    if text := command_help.answer(argv[1:]):
      print(text, flush=True)
      sys.exit(0)
    first = _set(flags.FLAGS, argv)
    texts = [other_words.of_flag(name) for name in flags.FLAGS
             if flags.FLAGS[name].present]  # absl has a --log_dir.
    if not any(texts):
      return first
    text = ' '.join(filter(None, texts))
  except flags.UnrecognizedFlagError as e:
    text = other_words.of_flag(e.flagname) or str(e)
  except (errors.ConfigError, flags.Error) as e:
    text = str(e).removeprefix('ERROR:: ')
    text = other_words.of_value(text) or text
  except UnicodeDecodeError:
    text = 'A file of --flagfile is not a text file.'
  except ValueError as e:  # Such as --nouse_lstm=true.
    text = f'flag {e}.'
  print(f'scalable_agent: {text}', file=sys.stderr)
  sys.exit(errors.ConfigError.exit_code)


def main(argv: Sequence[str]) -> int:
  """Runs the mode of the parsed flags.

  A `UserError` is printed in a line, without a traceback.

  Returns:
    The exit code. 0: the run has ended, or was stopped with a checkpoint. 1:
    memory or disk space ran out, or the reader of the output has ended. 130, or
    the code of the signal: the run was stopped before there was anything to
    save. For a `UserError`, the exit code of its class.
  """
  del argv
  logging.set_verbosity(logging.WARNING)
  variables.set_tensorflow()
  try:
    config = config_of(flags.FLAGS)
    with contextlib.ExitStack() as stack:
      if config.mode in ('train', 'suite'):
        stack.enter_context(contextlib.redirect_stdout(
            console.Output(sys.stdout)))
      run = import_mode(config)
      if config.mode in program.OF_TRAINED_AGENTS:
        config = dataclasses.replace(config, logdir=zoo.copy(config.logdir))
      if config.mode not in ('train', 'suite'):  # Which handle signals.
        # Incomplete directories must be removed.
        stack.enter_context(
            signals.stop_on_signals(signals.Stop(waits_for='')))
      exit_code = run(config) if config.mode != 'suite' else run(
          config, flags.FLAGS, parse)
      sys.stdout.flush()
      return exit_code
  except errors.UserError as e:
    if flags.FLAGS.debug:
      traceback.print_exc()
    console.print_error(e, all_frames=flags.FLAGS.debug)
    return e.exit_code
  except BrokenPipeError:  # The reader of the output has ended: print no more.
    console.drop_stdout()
    if flags.FLAGS.mode == 'train':
      console.print_last_line('stopped: the reader of the output has ended.')
    return 1
  except Exception as e:
    text = errors.in_a_line(e)
    if flags.FLAGS.debug or not text:
      raise
    console.print_last_line(text)
    console.is_out_of_memory = not isinstance(e, OSError)
    return 1
  except KeyboardInterrupt as e:  # Not a `Stopped` if a cluster is left.
    is_start = flags.FLAGS.mode == 'train' and isinstance(e, signals.Stopped)
    when = ' before there was anything new to save' if is_start else ''
    console.print_last_line(f'stopped by a signal{when}.')
    return e.args[0] if e.args else 130


def import_mode(config: config_lib.Config) -> Callable[..., int]:
  """Checks the settings; imports and returns the function of `--mode`."""
  module, function = MODES[config.mode]
  _check(config)
  if config.mode == 'train' and config.ray_address:
    module, function = 'scalable_agent.distributed.driver', 'train'
    if 'RAY_AUTH_TOKEN' in os.environ:  # ray reads it when it is imported.
      os.environ.setdefault('RAY_AUTH_MODE', 'token')
    if importlib.util.find_spec('ray') is None:
      raise errors.MissingDependencyError(
          f'{"--ray_address" if config.task < 0 else "--task"} needs ray: pip '
          'install "scalable_agent[ray]".')
  with console.quiet_tensorflow():
    return getattr(importlib.import_module(module), function)


def _check(config: config_lib.Config) -> None:
  """Raises errors that can be found before the slow import of TensorFlow."""
  try:
    os.getcwd()
  except FileNotFoundError as e:
    raise errors.ConfigError(
        'The current directory was deleted: change to another one.') from e
  if (config.mode not in program.OF_TRAINED_AGENTS
      and config.logdir.startswith(zoo.PREFIX)):
    raise errors.ConfigError(
        f'--logdir={config.logdir} is for the modes test, video and export: '
        'agents of the zoo have no optimizer and no curves.')
  if config.mode == 'train' and config.job_name == 'learner':
    with logdirs.locked(config.logdir):
      pass
  # The level of a lost training is not the default level.
  is_lost = (config.mode in program.OF_TRAINED_AGENTS
             and not flags.FLAGS['level_name'].present
             and config_lib.trained_with(zoo.folder(config.logdir)) is None)
  default = ''
  is_default = config.level_name in (
      lab_levels.DEFAULT, config_lib.Config.level_name)
  if is_default and not flags.FLAGS['level_name'].present:
    default = 'the default level'
    if config.algorithm == 'impala':
      lab = 'with' if lab_levels.is_installed() else 'without'
      default += f' {lab} DeepMind Lab'
  if config.mode in (
      'train', 'check', 'test', 'video') and not (
          is_lost or config.ray_address):
    # Other machines may have other packages.
    try:
      environments.check_names(
          levels.level_names(config.level_name, config.is_test), config)
    except errors.MissingDependencyError as e:
      if default and config.mode in ('train', 'check'):
        raise errors.MissingDependencyError(
            f'{e} {config.level_name} is {default}.') from e
      raise
  if config.mode == 'train' and not config.ray_address:
    level = config.level_name + (f' ({default})' if default else '')
    print(f'scalable_agent: {config.algorithm} on {level}, in {config.logdir}. '
          'Loading TensorFlow.', flush=True)


def run_program() -> None:
  """Runs the program with the arguments of its command; does not return."""
  console.open_closed_streams()
  signals.is_program = True
  # As with `python FILE.py`: module:function may name a module in here.
  with contextlib.suppress(OSError):  # The directory may have been removed.
    if os.getcwd() not in sys.path:
      sys.path.insert(0, os.getcwd())
  # --helpfull shows the docstring of the main module.
  sys.modules['__main__'].__doc__ = __doc__
  for name in ['recipe', *config_lib.Config.__dataclass_fields__]:
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])
  try:
    app.run(lambda argv: console.end_program(main(argv)),
            flags_parser=_parse_flags)
  except BrokenPipeError:  # Of --help: the reader has seen enough.
    console.drop_stdout()
    sys.exit(1)


if __name__ == '__main__':  # By `python -m`: flags are defined by one module.
  importlib.import_module('scalable_agent.experiment').run_program()
elif __name__ != '__mp_main__':
  command_line.define_flags(flags.FLAGS)
