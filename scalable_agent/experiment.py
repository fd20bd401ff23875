# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Trains and tests agents: flags in, checkpoints and scores out.

  python experiment.py --recipe=pong_two_cores --logdir=/tmp/a
  python experiment.py --logdir=/tmp/a --mode=test
  python experiment.py --logdir=/tmp/a,/tmp/b --mode=table
  python experiment.py --logdir=/tmp/a --mode=plot
  python experiment.py --logdir=/tmp/a --mode=video
  python experiment.py --logdir=/tmp/a --mode=export

Where the package is installed, `scalable-agent` is the same program. --help
lists the flags by name, --helpfull by section. Programs can use
`scalable_agent.settings.config.Config` without flags.
"""

from collections.abc import Callable, Sequence
import contextlib
import dataclasses
import difflib
import importlib
import importlib.util
import io
import itertools
import os
import subprocess
import sys
import threading
import traceback
from typing import TextIO

from absl import app
from absl import flags
from absl import logging
from scalable_agent import environments
from scalable_agent import errors
from scalable_agent.processes import signals
from scalable_agent.runs import logdirs
from scalable_agent.scores import levels
from scalable_agent.settings import config as config_lib
from scalable_agent.settings import recipes

# Module and function of every mode. The function takes a Config and returns the
# exit code. The module is imported late: main must first set environment
# variables of TensorFlow, and environment processes must not import TensorFlow.
MODES = {'train': ('scalable_agent.runs.training', 'train'),
         'test': ('scalable_agent.modes.test', 'run'),
         'table': ('scalable_agent.scores.files', 'compare'),
         'plot': ('scalable_agent.scores.plotting', 'run'),
         'video': ('scalable_agent.modes.video', 'run'),
         'export': ('scalable_agent.modes.export', 'run')}
# Modes that default to the settings of the training run.
_USES_TRAINED_SETTINGS = ('test', 'video', 'export')

# Lines that TensorFlow writes to stderr while it is imported.
_NOISE = ('^([IW]0000 |E0000 .*cuInit|WARNING: All log messages before absl|'
          'To enable the following instructions)')


class _WholeNumbers(flags.IntegerParser):
  """Parser of whole numbers that also accepts 2e3 and 1_000."""

  def convert(self, argument: str | int) -> int:
    try:
      return super().convert(argument)
    except ValueError:
      with contextlib.suppress(ValueError):
        if (number := float(argument)).is_integer():
          return int(number)
      raise ValueError('it must be a whole number') from None


class _Booleans(flags.BooleanParser):
  """Parser of booleans with a plain error message."""

  def parse(self, argument: str | int | bool) -> bool:
    try:
      return super().parse(argument)
    except ValueError:
      raise ValueError('it must be true or false') from None


def _define_boolean(*, flag_values, name, default, help, module_name):
  flag = flags.BooleanFlag(name, default, help)
  flag.parser = _Booleans()
  flags.DEFINE_flag(flag, flag_values, module_name)


def _define_integer(*, flag_values, **kwargs):
  flags.DEFINE(_WholeNumbers(), flag_values=flag_values,
               serializer=flags.ArgumentSerializer(), **kwargs)


_DEFINE: dict[object, Callable[..., object]] = {
    str: flags.DEFINE_string, int: _define_integer,
    float: flags.DEFINE_float, bool: _define_boolean,
    bool | None: _define_boolean}


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines a flag for every setting, grouped by section for --helpfull."""
  flags.DEFINE_string(
      'recipe', '', 'Name of a recipe: a file of flags that is read first. '
      'All flags but --algorithm can be overridden. Recipes: '
      f'{", ".join(recipe_names())}.',
      flag_values=flag_values, module_name='00 recipe')
  for number, section in enumerate(config_lib.SECTIONS, 1):
    name = section.__name__.removesuffix('Settings').lower()
    for field in dataclasses.fields(section):
      if field.name in flag_values:  # Every section has the mode.
        continue
      kwargs = dict(name=field.name, default=field.default,
                    help=field.metadata['text'], flag_values=flag_values,
                    module_name=f'{number:02} {name}')  # Sorted by absl.
      if field.metadata['choices']:
        flags.DEFINE_enum(enum_values=field.metadata['choices'], **kwargs)
      else:
        _DEFINE[field.type](**kwargs)


def config_of(flag_values: flags.FlagValues) -> config_lib.Config:
  """Returns the settings in flags.

  Modes of a trained agent take the settings of the training run for all flags
  that are not given.

  Raises:
    ConfigError: if a setting is wrong.
  """
  values = flag_values.flag_values_dict()
  names = [field.name for field in dataclasses.fields(config_lib.Config)]
  given = {name: values[name] for name in names if flag_values[name].present}
  trained_with = None
  if values['mode'] in _USES_TRAINED_SETTINGS:
    trained_with = config_lib.trained_with(
        os.path.expanduser(values['logdir']))
  if trained_with is None:
    config = config_lib.Config.from_values(values)
    config.check_used(given)
    return config
  return dataclasses.replace(trained_with, logdir=values['logdir'], **{
      name: value for name, value in given.items() if name != 'logdir'})


def parse(args: Sequence[str]) -> config_lib.Config:
  """Returns the settings in arguments such as `['--batch_size=8', ...]`.

  Files of `--flagfile` are read. The flags of this program do not change.

  Raises:
    ConfigError: if a setting is wrong.
    flags.Error: if there is no such flag, or its value has the wrong type.
  """
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  _set(flag_values, ['experiment.py', *args])
  return config_of(flag_values)


def recipe_names() -> list[str]:
  """Returns the names of all recipes."""
  return sorted(name.removesuffix('.flags') for name in os.listdir(
      os.path.dirname(recipes.__file__)) if name.endswith('.flags'))


def with_recipe(args: Sequence[str]) -> list[str]:
  """Returns the arguments, with `--recipe` replaced by a `--flagfile` in front.

  Raises:
    ConfigError: if there is no such recipe, or more than one `--recipe`.
  """
  left, asked, rest = list(args), [], []
  while left:
    arg = left.pop(0)
    flag, equals, value = arg.partition('=')
    if arg == '--':
      rest += [arg, *left]
      break
    if flag not in ('--recipe', '-recipe'):
      rest.append(arg)
    else:
      asked.append(value if equals else ''.join(left[:1]))
      left = left[0 if equals else 1:]
  if not asked:
    return rest
  if len(asked) > 1:
    raise errors.ConfigError(
        f'Only one --recipe can be given, not {" and ".join(asked)}.')
  [name] = asked
  names = recipe_names()
  if name not in names:
    similar = ([n for n in names if name and name in n]
               or difflib.get_close_matches(name, names, n=3, cutoff=.4))
    hint = (f'did you mean {" or ".join(similar)}?' if similar
            else f'there are {", ".join(names)}.')
    raise errors.ConfigError(f'There is no recipe {name!r}: {hint}')
  file = os.path.join(os.path.dirname(recipes.__file__), f'{name}.flags')
  return [f'--flagfile={file}', *rest]


def _set(flag_values, argv):
  """Sets flags; returns the name of the program, `argv[:1]`.

  Raises:
    ConfigError, flags.Error: see `parse`.
  """
  args = with_recipe(argv[1:])
  check_order(args)
  first, *unknown = flag_values([argv[0], *args])
  if unknown:
    raise errors.ConfigError(f'Unknown arguments: {" ".join(unknown)}. Flags '
                             'begin with --; --help lists them.')
  if flag_values['recipe'].present:
    raise errors.ConfigError('--recipe cannot be used in a file of flags.')
  return [first]


def check_order(args: Sequence[str]) -> None:
  """Raises ConfigError for a flag that a later `--flagfile` would override.

  The last value of a flag wins. A flag typed before `--flagfile` would be
  overridden silently, so that is an error.

  Raises:
    flags.Error: if there is no such file, or a value has the wrong type.
  """
  args = list(itertools.takewhile(lambda arg: arg != '--', args))
  typed: list[str] = []
  while args:
    arg = args.pop(0)
    if arg.partition('=')[0] not in ('--flagfile', '-flagfile'):
      typed.append(arg)
      continue
    file = [arg] if '=' in arg else [arg, *args[:1]]
    args = args[len(file) - 1:]
    before, within, after = map(_given, (typed, file, args))
    for name in sorted(before.keys() & within.keys() - after.keys()):
      if before[name] != within[name]:
        raise errors.ConfigError(
            f'{before[name]} comes before {" ".join(file)}, which has '
            f'{within[name]}: give the flag after the file.')


def _given(args):
  """Returns the flags in `args` as texts, by name; ignores unknown flags."""
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  flag_values(['experiment.py', *args], known_only=True)
  return {name: flag_values[name].serialize() for name in flag_values
          if flag_values[name].present}


def _parse_flags(argv):
  """Sets the flags; ends the program with a line if a flag is wrong."""
  try:
    return _set(flags.FLAGS, argv)
  except (errors.ConfigError, flags.Error) as e:
    text = str(e).removeprefix('ERROR:: ')
  except UnicodeDecodeError:
    text = 'A file of --flagfile is not a text file.'
  print(f'scalable_agent: {text}', file=sys.stderr)
  sys.exit(errors.ConfigError.exit_code)


def main(argv: Sequence[str]) -> int:
  """Runs the mode that the flags ask for.

  A `UserError` is printed in a line, without a traceback.

  Args:
    argv: ignored; the flags are parsed already.

  Returns:
    The exit code. 0: the run has ended, or was stopped with a checkpoint. 1:
    memory or disk space ran out, or the reader of the output has ended. 130, or
    the code of the signal: the run was stopped before there was anything to
    save. For a `UserError`, the exit code of its class.
  """
  del argv
  logging.set_verbosity(logging.WARNING)
  # Errors are raised. Other logs of TensorFlow do not help users.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  os.environ.setdefault('TF_FORCE_GPU_ALLOW_GROWTH', 'true')
  # TensorFlow leaves oneDNN off on CPUs without AVX-512. There, oneDNN makes an
  # update up to twice as fast.
  os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
  try:
    config = config_of(flags.FLAGS)
    with contextlib.ExitStack() as stack:
      if config.mode == 'train':
        stack.enter_context(contextlib.redirect_stdout(_Output(sys.stdout)))
      exit_code = _run(config)
      sys.stdout.flush()
      return exit_code
  except errors.UserError as e:
    if flags.FLAGS.debug:
      traceback.print_exc()
    _print_error(e)
    return e.exit_code
  except BrokenPipeError:  # The reader of the output has ended: print no more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
  except Exception as e:
    text = errors.in_a_line(e)
    if flags.FLAGS.debug or not text:
      raise
    _say(text)
    return 1
  except KeyboardInterrupt as e:  # Not a `Stopped` if a cluster is left.
    when = (' before there was anything to save' if flags.FLAGS.mode == 'train'
            and isinstance(e, signals.Stopped) else '')
    _say(f'stopped by a signal{when}.')
    return e.args[0] if e.args else 130


def _run(config):
  """Imports and runs the function of `--mode`; returns the exit code."""
  module, function = MODES[config.mode]
  _check(config)
  if config.mode == 'train' and config.ray_address:
    module = 'scalable_agent.distributed.driver'
    if 'RAY_AUTH_TOKEN' in os.environ:  # ray reads it when it is imported.
      os.environ.setdefault('RAY_AUTH_MODE', 'token')
    if importlib.util.find_spec('ray') is None:
      raise errors.MissingDependencyError(
          '--ray_address needs ray: pip install -e ".[ray]".')
  with _without_noise():
    run = getattr(importlib.import_module(module), function)
    if 'tensorflow' in sys.modules:
      # TensorFlow looks for GPUs now, and reports missing libraries.
      sys.modules['tensorflow'].config.list_physical_devices()
  if config.mode == 'train':
    return run(config)
  # So incomplete directories are removed after SIGTERM, too.
  with signals.stop_on_signals(signals.Stop(waits_for='')):
    return run(config)


class _Output(io.TextIOBase):
  """Writes to a file; drops output when the disk is full.

  The output of a run may be on the disk of the checkpoints. A full disk must
  not end the run.
  """

  def __init__(self, file: TextIO):
    super().__init__()
    self._file = file

  def write(self, text: str) -> int:
    with _room_not_needed():
      self._file.write(text)
    return len(text)

  def flush(self) -> None:
    with _room_not_needed():
      self._file.flush()

  def isatty(self) -> bool:
    return self._file.isatty()

  def fileno(self) -> int:
    return self._file.fileno()

  @property
  def encoding(self) -> str:  # type: ignore[override]
    return self._file.encoding


@contextlib.contextmanager
def _room_not_needed():
  try:
    yield
  except OSError as e:
    if e.errno not in errors.NO_ROOM:
      raise


def _check(config):
  """Raises errors that can be found before the slow import of TensorFlow."""
  if config.mode == 'train' and config.job_name == 'learner':
    with logdirs.locked(config.logdir):
      pass
  if config.mode in ('train', 'test', 'video') and not config.ray_address:
    # Other machines may have other packages.
    environments.check_names(
        levels.level_names(config.level_name, config.is_test), config)
  if config.mode == 'train' and not config.ray_address:
    print(f'scalable_agent: {config.algorithm} on {config.level_name}, in '
          f'{config.logdir}. Loading TensorFlow.', flush=True)


@contextlib.contextmanager
def _without_noise():
  """Drops the lines of `_NOISE` from stderr.

  TensorFlow writes these lines before it reads its log level. A process of its
  own filters stderr, so that no other line is lost even if this process dies.
  """
  sys.stderr.flush()
  try:
    grep = subprocess.Popen(['grep', '--line-buffered', '-aEv', _NOISE],
                            stdin=subprocess.PIPE, stdout=2)
  except OSError:  # There is no grep.
    yield
    return
  assert grep.stdin is not None  # For mypy: stdin is a pipe.
  stderr = os.dup(2)
  os.dup2(grep.stdin.fileno(), 2)
  grep.stdin.close()
  try:
    yield
  finally:
    sys.stderr.flush()
    os.dup2(stderr, 2)
    os.close(stderr)
    grep.wait()


def _print_error(error):
  """Prints an error; for code of users, with its frames."""
  if isinstance(error, errors.UserCodeError):
    with contextlib.suppress(OSError):
      print(error.all_frames if flags.FLAGS.debug else error.frames,
            file=sys.stderr, end='')
  if isinstance(error, errors.SaveError):
    # The run may have been ending already, because of another error.
    first = error.__context__
    while first and not isinstance(first, errors.UserError):
      first = first.__context__
    if first:
      _print_error(first)
  _say(error)


def _say(text):
  """Prints the last line, if stderr can be written."""
  with contextlib.suppress(OSError):
    print(f'scalable_agent: {text}', file=sys.stderr, flush=True)


def _exit(exit_code):
  """Ends the program without waiting for threads that still act."""
  if any(thread.daemon and thread.name.startswith(
      ('actor-', 'batcher-', 'batches', 'leave'))
         for thread in threading.enumerate()):
    # TensorFlow and ray must not be unloaded while a thread uses them.
    _flush()
    sys.stderr.flush()
    os._exit(exit_code)
  _flush()
  sys.exit(exit_code)


def _flush():
  """Flushes stdout, if there is room."""
  try:
    sys.stdout.flush()
  except OSError:  # Python would flush again, and change the exit code.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_program() -> None:
  """Runs the program with the arguments of its command; does not return."""
  # As with `python FILE.py`: module:function may name a module in here.
  with contextlib.suppress(OSError):  # The directory may have been removed.
    if os.getcwd() not in sys.path:
      sys.path.insert(0, os.getcwd())
  # --help shows the docstring of the main module.
  sys.modules['__main__'].__doc__ = __doc__
  for name in ['recipe', *config_lib.Config.__dataclass_fields__]:
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])
  app.run(lambda argv: _exit(main(argv)), flags_parser=_parse_flags)


define_flags(flags.FLAGS)
