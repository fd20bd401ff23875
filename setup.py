# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Installs scalable_agent; optional parts are extras."""

import os
import pathlib
import re
from urllib import parse

import setuptools

_ROOT = pathlib.Path(__file__).parent
_README = (_ROOT / 'README.md').read_text('utf-8')
[_VERSION] = re.findall(
    r"^__version__ = '(.+)'$",
    (_ROOT / 'scalable_agent' / '__init__.py').read_text('utf-8'), re.M)


def _with_absolute_links(markdown, repository, tag):
  """Returns Markdown whose relative links and images have full addresses.

  Args:
    markdown: a text at the root of the repository.
    repository: owner and name on GitHub.
    tag: the tag whose files the addresses name.
  """
  def absolute(match):
    kind = 'raw' if match[1].startswith('!') else 'blob'
    page = f'https://github.com/{repository}/{kind}/{tag}/README.md'
    return f'{match[1]}({parse.urljoin(page, match[2])})'

  return re.sub(r'(!\[[^]]*\]|\])\(([^)\s]+)\)', absolute, markdown)


# An index of packages has no files beside the text.
if os.environ.get('GITHUB_REF_TYPE') == 'tag':
  _README = _with_absolute_links(
      _README, os.environ['GITHUB_REPOSITORY'], os.environ['GITHUB_REF_NAME'])

_ATARI = ['ale-py>=0.12']
_MINIGRID = ['minigrid>=3.1']
_VIZDOOM = ['vizdoom>=1.3.1']
_MUJOCO = ['gymnasium[mujoco]>=1.1']
# gymnasium-robotics 1.4.2 fails with mujoco 3.17 and 4.0.
_ROBOTICS = ['gymnasium-robotics>=1.4.2', 'mujoco==3.3.7']
# Of gymnasium: CarRacing and the films of CartPole and its like are drawn so.
_PYGAME = 'pygame-ce>=2.1.3'
# MinAtar asks for matplotlib, pandas and seaborn; only pictures need these.
_MINATAR = ['minatar>=1.0.15']
# dm_control 1.0.50 fails with mujoco 4.0.
_DM_CONTROL = ['dm_control>=1.0.34', 'mujoco<4', 'shimmy>=2.0']
# 296 MB of wheels with the assets, so not in `dev`.
_ENVPOOL = ['envpool>=1.2.5; python_version >= "3.11"']
_BOX2D = ['box2d>=2.3.10', _PYGAME]
_CUDA = ['tensorflow[and-cuda]>=2.18; platform_system == "Linux"']
_RAY = ['ray>=2.60']
_PBT = ['ray[tune]>=2.60']
_PLOT = ['matplotlib>=3.8']
_VIDEO = ['imageio>=2.34', 'imageio-ffmpeg>=0.5', 'pillow>=10.1', _PYGAME]
# The last mkdocstrings for Python 3.10 fails with pymdown-extensions 12.
# mlflow 3.17.2 needs an older pyarrow than constraints.txt names.
_MLFLOW = ['mlflow>=3.17.2']
_WANDB = ['wandb>=0.31']
_DOCS = ['mkdocs>=1.6,<2', 'mkdocs-material>=9.6', 'mkdocstrings-python>=2.0',
         'pymdown-extensions<12; python_version < "3.11"', 'ruff>=0.9']
_DEV = ['hypothesis>=6', 'mypy>=1.11', 'packaging>=24', 'psutil>=5.6',
        'pytest>=8', 'pytest-xdist>=3.6', 'pyyaml>=6', 'ruff>=0.9']

setuptools.setup(
    name='scalable_agent',
    version=_VERSION,
    description='IMPALA, APPO, DDQN, DDPG, TD3, SAC and MPO in TensorFlow 2, '
    'the successor of scalable_agent',
    long_description=_README,
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    author='The scalable_agent Authors',
    keywords=['reinforcement learning', 'IMPALA', 'V-trace', 'APPO', 'PPO',
              'DQN', 'DDPG', 'TD3', 'SAC', 'MPO', 'TensorFlow', 'Atari',
              'DeepMind Lab'],
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        *[f'Programming Language :: Python :: 3.{minor}'
          for minor in range(10, 14)],
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
        'Typing :: Typed',
    ],
    project_urls={
        'Paper': 'https://arxiv.org/abs/1802.01561',
        'Predecessor': 'https://github.com/google-deepmind/scalable_agent',
    },
    python_requires='>=3.10,<3.14',
    packages=setuptools.find_packages(include=['scalable_agent*']),
    package_data={
        'scalable_agent': ['py.typed'],
        'scalable_agent.settings.recipes': ['*.flags'],
        'scalable_agent.scores.data': ['*.csv'],
        'scalable_agent.zoo': ['*/*.json', '*/*.npz'],
    },
    entry_points={'console_scripts': [
        'scalable-agent = scalable_agent.experiment:run_program']},
    install_requires=[
        'absl-py>=2',
        'dm-tree>=0.1.8',
        'gymnasium>=1.1',
        'numpy',
        'rich>=13',
        'tensorboard',
        'tensorflow>=2.18',
        'tensorflow-probability>=0.25',
        # tensorflow-probability needs it beside Keras 3.
        'tf-keras>=2.18',
    ],
    extras_require={
        'atari': _ATARI,
        'minigrid': _MINIGRID,
        'vizdoom': _VIZDOOM,
        'mujoco': _MUJOCO,
        'robotics': _ROBOTICS,
        'minatar': _MINATAR,
        'dm-control': _DM_CONTROL,  # Older pip finds no name with `_`.
        'box2d': _BOX2D,
        'envpool': _ENVPOOL,
        'plot': _PLOT,
        'video': _VIDEO,
        'cuda': _CUDA,
        'ray': _RAY,
        'pbt': _PBT,
        'mlflow': _MLFLOW,
        'wandb': _WANDB,
        'docs': _DOCS,
        'dev': (_ATARI + _MINIGRID + _VIZDOOM + _MUJOCO + _ROBOTICS + _BOX2D
                + _PLOT + _VIDEO + _PBT + _DEV),
    },
)
