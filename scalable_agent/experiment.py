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

# The function of every mode takes a Config and returns the exit code. Its
# module is imported only when it is needed: main must first set environment
# variables of TensorFlow, and environment processes must not import TensorFlow.
MODES = {'train': ('scalable_agent.runs.training', 'train'),
         'test': ('scalable_agent.modes.test', 'run'),
         'table': ('scalable_agent.scores.files', 'compare'),
         'plot': ('scalable_agent.scores.plotting', 'run'),
         'video': ('scalable_agent.modes.video', 'run'),
         'export': ('scalable_agent.modes.export', 'run')}
# Those that take the settings of the training.
_OF_TRAINED = ('test', 'video', 'export')


# What TensorFlow writes to stderr while it is imported.
_NOISE = ('^([IW]0000 |E0000 .*cuInit|WARNING: All log messages before absl|'
          'To enable the following instructions)')


class _WholeNumbers(flags.IntegerParser):
  """Takes 2e3 and 1_000 for whole numbers, too."""

  def convert(self, argument: str | int) -> int:
    try:
      return super().convert(argument)
    except ValueError:
      with contextlib.suppress(ValueError):
        if (number := float(argument)).is_integer():
          return int(number)
      raise ValueError('it must be a whole number') from None


class _Booleans(flags.BooleanParser):
  """Says in words what is wrong."""

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
  """Defines a flag for every setting, in groups that --helpfull shows."""
  flags.DEFINE_string(
      'recipe', '', 'Name of a recipe, whose flags are read first: others '
      f'override them, but not --algorithm. {", ".join(recipe_names())}.',
      flag_values=flag_values, module_name='00 recipe')
  for number, section in enumerate(config_lib.SECTIONS, 1):
    name = section.__name__.removesuffix('Settings').lower()
    for field in dataclasses.fields(section):
      if field.name in flag_values:  # The mode is in two sections.
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

  In modes of a trained agent, flags that were not given are those of its
  training.

  Raises:
    ConfigError: if one of them is wrong.
  """
  values = flag_values.flag_values_dict()
  names = [field.name for field in dataclasses.fields(config_lib.Config)]
  given = {name: values[name] for name in names if flag_values[name].present}
  trained_with = None
  if values['mode'] in _OF_TRAINED:
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

  Flag files are read. The flags of this program do not change.

  Raises:
    ConfigError: if a setting is wrong.
    flags.Error: if there is no such flag, or its value has the wrong type.
  """
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  _set(flag_values, ['experiment.py', *args])
  return config_of(flag_values)


def recipe_names() -> list[str]:
  """Returns what `--recipe` takes."""
  return sorted(name.removesuffix('.flags') for name in os.listdir(
      os.path.dirname(recipes.__file__)) if name.endswith('.flags'))


def with_recipe(args: Sequence[str]) -> list[str]:
  """Returns the arguments with the file of `--recipe` in front, if any.

  Raises:
    ConfigError: there is no such recipe, or there are two of them.
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
  """Sets flags; returns what is left of `argv`, which is its first entry.

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
  """Raises ConfigError for a flag that a later `--flagfile` sets otherwise.

  Of two values, the later one counts. After a file, that is what one wants;
  before it, what was typed would be lost.

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
            f'{within[name]}: give it after the file.')


def _given(args):
  """Returns the flags in `args` as texts, by name; ignores unknown ones."""
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  flag_values(['experiment.py', *args], known_only=True)
  return {name: flag_values[name].serialize() for name in flag_values
          if flag_values[name].present}


def _parse_flags(argv):
  """Sets the flags; ends the program with one line if one is wrong."""
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

  Errors of users are printed in a line, without a stack of frames.

  Args:
    argv: is not used; the flags are parsed already.

  Returns:
    The exit code: 0 for an end or a stop with a checkpoint, that of
    `errors.UserError` for one of them, 1 if there is not enough memory or room
    on a disk or nobody reads the output, 130 (or that of the signal) for a stop
    before there was anything to save.
  """
  del argv  # `_parse_flags` has taken all of them.
  logging.set_verbosity(logging.WARNING)
  # Errors are raised. What TensorFlow logs besides does not help users.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  os.environ.setdefault('TF_FORCE_GPU_ALLOW_GROWTH', 'true')
  # TensorFlow leaves oneDNN off on CPUs without AVX-512, where it makes an
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
  except KeyboardInterrupt as e:  # Others come while a cluster is left.
    what = (' before there was anything to save' if flags.FLAGS.mode == 'train'
            and isinstance(e, signals.Stopped) else '')
    _say(f'stopped by a signal{what}.')
    return e.args[0] if e.args else 130


def _run(config):
  """Imports and runs what `--mode` asks for; returns the exit code."""
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
      # It looks for GPUs now, and says what it does not find.
      sys.modules['tensorflow'].config.list_physical_devices()
  if config.mode == 'train':
    return run(config)
  # Directories that are not complete are removed, also after SIGTERM.
  with signals.stop_on_signals(signals.Stop(waits_for='')):
    return run(config)


class _Output(io.TextIOBase):
  """Writes to a file; what finds no room there is left out.

  The output of a run may be a file on the disk of its checkpoints. If that is
  full, the run goes on, as it does without its curves.
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
  """Raises for what can be known before TensorFlow takes its time."""
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
  """Leaves out what TensorFlow says about itself while it is imported.

  It does so before it looks at its log level. Another process filters what is
  written, so that nothing else is lost, whatever happens to this one.
  """
  sys.stderr.flush()
  try:
    grep = subprocess.Popen(['grep', '--line-buffered', '-aEv', _NOISE],
                            stdin=subprocess.PIPE, stdout=2)
  except OSError:  # There is no grep.
    yield
    return
  assert grep.stdin is not None  # It is a pipe.
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
  """Prints where an error comes from, if that helps, and then what it is."""
  if isinstance(error, errors.UserCodeError):
    with contextlib.suppress(OSError):
      print(error.all_frames if flags.FLAGS.debug else error.frames,
            file=sys.stderr, end='')
  if isinstance(error, errors.SaveError):
    # It may have come while the run was ending because of another one.
    first = error.__context__
    while first and not isinstance(first, errors.UserError):
      first = first.__context__
    if first:
      _print_error(first)
  _say(error)


def _say(text):
  """Prints the last line; the exit code counts even if that is impossible."""
  with contextlib.suppress(OSError):
    print(f'scalable_agent: {text}', file=sys.stderr, flush=True)


def _exit(exit_code):
  """Ends the program; does not wait for threads that still act."""
  if any(thread.daemon and thread.name.startswith(
      ('actor-', 'batcher-', 'batches', 'leave'))
         for thread in threading.enumerate()):
    # They may be within TensorFlow or ray, which must not be taken away.
    _flush()
    sys.stderr.flush()
    os._exit(exit_code)
  _flush()
  sys.exit(exit_code)


def _flush():
  """Writes what is left of the output, if there is room."""
  try:
    sys.stdout.flush()
  except OSError:  # Python would try again, and change the exit code.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_program() -> None:
  """Runs the program with the arguments of its command; does not return."""
  # As with `python FILE.py`: names like module:function may be of modules here.
  with contextlib.suppress(OSError):  # It may have been removed.
    if os.getcwd() not in sys.path:
      sys.path.insert(0, os.getcwd())
  # For --help, which is about the main module.
  sys.modules['__main__'].__doc__ = __doc__
  for name in ['recipe', *config_lib.Config.__dataclass_fields__]:
    flags.FLAGS.register_key_flag_for_module(sys.argv[0], flags.FLAGS[name])
  app.run(lambda argv: _exit(main(argv)), flags_parser=_parse_flags)


define_flags(flags.FLAGS)
