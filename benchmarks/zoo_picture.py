# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Draws docs/zoo.gif: agents of the zoo that play, side by side.

  python benchmarks/zoo_picture.py --out=docs/zoo.gif \\
      --names=breakout,pong,vizdoom_basic,lunar_lander,fetch_reach,catch

Each agent plays one game in video mode. The GIF has `--seconds` of each game,
from `--skip` seconds after the start; shorter games begin again.
"""

import argparse
from collections.abc import Sequence
import dataclasses
import pathlib
import shutil
import sys
import tempfile

import imageio.v2
import numpy as np
from PIL import Image

_ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT))
from scalable_agent import zoo
from scalable_agent.modes import video
from scalable_agent.settings import config as config_lib

_FRAMES_PER_S = 12.5  # GIFs count hundredths of a second.
_TILE = 160
_GAP = 4
_ROWS = 2


def film(name: str, directory: str) -> pathlib.Path:
  """Records a game of an agent; returns the video."""
  folder = zoo.folder(zoo.PREFIX + name)
  config = config_lib.trained_with(folder)
  assert config is not None
  [path] = video.record(dataclasses.replace(
      config, mode='video',
      logdir=shutil.copytree(folder, f'{directory}/{name}')))
  return pathlib.Path(path)


def tiles(path: pathlib.Path, skip_s: float,
          seconds: float) -> list[np.ndarray]:
  """Returns the pictures of a video for the GIF, each uint8 `[S, S, 3]`."""
  with imageio.v2.get_reader(path) as reader:
    per_s, length = reader.get_meta_data()['fps'], reader.count_frames()
    first = min(round(skip_s * per_s), length // 4)
    numbers = [(first + round(i * per_s / _FRAMES_PER_S)) % length
               for i in range(round(seconds * _FRAMES_PER_S))]
    wanted = set(numbers)
    found = {i: _tile(picture) for i, picture in enumerate(reader)
             if i in wanted}
  return [found[number] for number in numbers]


def _tile(picture: np.ndarray) -> np.ndarray:
  """Returns the picture within a black square."""
  image = Image.fromarray(picture)
  image.thumbnail((_TILE, _TILE), Image.Resampling.LANCZOS)
  square = Image.new('RGB', (_TILE, _TILE))
  square.paste(image, ((_TILE - image.width) // 2,
                       (_TILE - image.height) // 2))
  return np.asarray(square)


def grid(films: Sequence[Sequence[np.ndarray]]) -> list[Image.Image]:
  """Returns pictures with a tile of each film."""
  columns = -(-len(films) // _ROWS)
  rows = min(_ROWS, len(films))
  size = (columns * (_TILE + _GAP) - _GAP, rows * (_TILE + _GAP) - _GAP)
  pictures = []
  for row in zip(*films):
    picture = Image.new('RGB', size, 'white')
    for i, tile in enumerate(row):
      y, x = divmod(i, columns)
      picture.paste(Image.fromarray(tile),
                    (x * (_TILE + _GAP), y * (_TILE + _GAP)))
    pictures.append(picture)
  return pictures


def write(pictures: Sequence[Image.Image], path: str, colors: int) -> None:
  """Writes a GIF whose pictures share a palette."""
  some = pictures[::max(1, len(pictures) // 8)]
  together = Image.new('RGB', (some[0].width, some[0].height * len(some)))
  for i, picture in enumerate(some):
    together.paste(picture, (0, i * picture.height))
  palette = together.quantize(colors, dither=Image.Dither.NONE)
  first, *others = [picture.quantize(
      palette=palette, dither=Image.Dither.NONE) for picture in pictures]
  first.save(path, save_all=True, append_images=others, loop=0,
             duration=round(1000 / _FRAMES_PER_S), optimize=True)


def main() -> None:
  """Draws the agents that the command line names."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--out', required=True)
  parser.add_argument('--names', required=True)
  parser.add_argument('--seconds', type=float, default=8.)
  parser.add_argument('--skip', type=float, default=10.)
  parser.add_argument('--colors', type=int, default=96)
  args = parser.parse_args()
  with tempfile.TemporaryDirectory() as directory:
    films = [tiles(film(name, directory), args.skip, args.seconds)
             for name in args.names.split(',')]
  write(grid(films), args.out, args.colors)
  print(f'{args.out}: {pathlib.Path(args.out).stat().st_size / 1e6:.2f} MB')


if __name__ == '__main__':
  main()
