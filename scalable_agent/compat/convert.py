# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Converts settings of DI-engine's IMPALA and of PyTorchRL to a command.

  python -m scalable_agent.compat.convert FILE

FILE is a configuration of `IMPALAPolicy`, or a program that calls
`create_factory` of DDQN, DDPG, TD3, SAC or MPO. The file is read, not run. The
output is a command, and a comment for each setting without a flag.
"""

from collections.abc import Sequence
import shlex
import sys

from absl import flags
from scalable_agent import errors
from scalable_agent import experiment
from scalable_agent.compat import from_di_engine
from scalable_agent.compat import from_pytorchrl
from scalable_agent.compat import reading
from scalable_agent.processes import console


def convert(path: str) -> str:
  """Returns the command and the comments, as lines of a shell.

  Raises ConfigError if the file has no settings, or the flags do not fit.
  """
  file = reading.read(path)
  converted = from_di_engine.convert(file) or from_pytorchrl.convert(file)
  if converted is None:
    raise errors.ConfigError(
        f"{path} has neither a configuration of DI-engine's IMPALA (a "
        'dictionary with policy and env) nor a call of create_factory of '
        "PyTorchRL's DDQN, DDPG, TD3, SAC or MPO.")
  arguments = [f'--{name}={value}' for name, value in converted.flags.items()]
  try:
    experiment.parse(arguments)
  except (errors.ConfigError, flags.Error) as e:
    raise errors.ConfigError(
        f'The settings of {path} do not fit here: {e}') from e
  return '\n'.join([
      ' \\\n    '.join(['python experiment.py', *map(shlex.quote, arguments)]),
      # Of one line each, as a name or a value may have several.
      *(' '.join(f'# {name}: {text}'.split())
        for name, text in converted.notes.items())])


def main(argv: Sequence[str]) -> int:
  """Prints the result for the file in `argv[1]`; returns the exit code."""
  try:
    if len(argv) != 2 or argv[1].startswith('-'):
      raise errors.ConfigError(
          'Name one file: python -m scalable_agent.compat.convert FILE')
    print(convert(argv[1]))
    return 0
  except errors.UserError as e:
    console.print_error(e, all_frames=False)
    return e.exit_code


if __name__ == '__main__':
  sys.exit(main(sys.argv))
