# Copyright 2026 The scalable_agent Authors. Licensed under Apache 2.0.
"""Tests what the converter reads from files, and says of the rest."""

from absl.testing import absltest
from absl.testing import parameterized
from scalable_agent.compat import expressions
from scalable_agent.compat import from_di_engine
from scalable_agent.compat import from_pytorchrl
from scalable_agent.compat import reading

_CONFIG = """
common = dict(learning_rate=0.25, batch_size=8)
cfg = dict(env=dict(env_id='CartPole-v1'), policy=dict(
    model=dict({model}), learn=dict({learn}), collect=dict(n_sample=4)))
{after}
"""


class ReadingTest(parameterized.TestCase):

  def _read(self, text: str) -> reading.File:
    path = self.create_tempfile(content=text).full_path
    return reading.read(path)

  def _convert(self, model='', learn='', after=''):
    converted = from_di_engine.convert(self._read(_CONFIG.format(
        model=model, learn=learn, after=after)))
    assert converted is not None
    return converted

  @parameterized.parameters(
      ('**common', '', 0.25),
      ("**{**common, 'learning_rate': 0.75}", '', 0.75),
      ('', "cfg['policy']['learn']['learning_rate'] = 0.5", 0.5),
      ('', 'cfg.policy.learn.learning_rate = 0.5', 0.5),
      ('', "cfg['policy']['learn'] = dict(**common)", 0.25),
      ('', "cfg['policy']['learn']['learning_rate'] = "
       "common['learning_rate']", 0.25),
      ('', 'cfg.policy.learn.update(common)', 0.25),
      ('', "cfg['policy']['learn'].update({'learning_rate': 0.5})", 0.5),
      ('', 'cfg["policy"]["learn"].update(common, learning_rate=0.75)', 0.75),
      ('', "cfg['policy']['learn'] |= common", 0.25),
      ('', "cfg['policy'] |= dict(learn=dict(learning_rate=0.5))", 0.5),
      ('', "cfg |= {'policy': cfg['policy'] | {'learn': common}}", 0.25),
      ('', "cfg['policy']['learn']: dict = common", 0.25),
      ('', 'other: dict = dict(common)\n'
       'other["learning_rate"] += 0.5\ncfg.policy.learn = other', 0.75),
      ('', 'other = copy.deepcopy(common)\nother.update(learning_rate=0.5)\n'
       'cfg.policy.learn = other', 0.5),
      ('', 'other = common.copy()\nother.update(learning_rate=0.5)\n'
       'cfg.policy.learn.learning_rate = common["learning_rate"]', 0.25),
      ('**common', "cfg['policy']['learn']['learning_rate'] *= 2", 0.5))
  def test_parts_of_dictionaries(self, learn, after, rate):
    converted = self._convert(learn=learn, after=after)
    self.assertEqual(converted.flags['learning_rate'], rate)

  @parameterized.parameters(
      ('**other()', '', '**other()', 'other()'),
      ('', "cfg['policy']['learn'][name] = 1", 'name',
       "cfg['policy']['learn'][name]"),
      ('**common', "cfg['policy']['learn']['learning_rate'] *= factor",
       'learning_rate', "cfg['policy']['learn']['learning_rate'] *= factor"),
      ('', 'cfg.policy.learn.update(other)', '**other', 'other'),
      ('', 'cfg.policy.learn |= other()', '**other()', 'other()'),
      ('**common', "cfg.policy.learn.pop('learning_rate')",
       "**cfg.policy.learn.pop('learning_rate')",
       "cfg.policy.learn.pop('learning_rate')"),
      ('**common', 'del cfg.policy.learn.learning_rate', 'learning_rate',
       'del cfg.policy.learn.learning_rate'))
  def test_unknown_parts_have_notes(self, learn, after, name, text):
    notes = self._convert(learn=learn, after=after).notes
    self.assertStartsWith(notes[f'policy.learn.{name}'],
                          f'The value {text} is not known')

  @parameterized.parameters(
      ('lr = 1\nif args.small:\n  lr = 2', 'set by "if args.small"'),
      ('if args.small:\n  lr = 1\nelif x:\n  lr = 2',
       'set by "if args.small"'),
      ('if args.small:\n  lr = 1\nelse:\n  lr = 1', 1),
      ('if args.small:\n  lr = 1\nelse:\n  raise ValueError()', 1),
      ('lr = 1\nIS_SMALL = False\nif IS_SMALL:\n  lr = 2', 1),
      ('lr = 1\nif __name__ == "__main__":\n  lr = 2', 2),
      ('lr = 1\nfor x in names:\n  lr = 2', 'set by "for x in names"'),
      ('lr = 1\nfor lr in (1, 2):\n  pass', 'lr'),
      ('lr = 1\nwhile x:\n  lr = lr * 2', 'set by "while x"'),
      ('try:\n  lr = 1\nexcept ImportError:\n  lr = 2', 'set by "try"'),
      ('try:\n  lr = 1\nfinally:\n  x = 2', 1),
      ('match x:\n  case 1:\n    lr = 1\n  case _:\n    lr = 2',
       'set by "match x"'),
      ('lr = 1\nlr, x = 2, 3', 2),
      ('lr = 1\nx, (*y, lr) = load()', 'lr'),
      ('p.add_argument("--lr", default=1)\nargs = p.parse_args()\n'
       'args.lr = 2\nlr = args.lr', 2),
      ('p.add_argument("--lr", default=1)\nopt = p.parse_args()\n'
       'if opt.small:\n  opt.lr = 2\nlr = opt.lr', 'set by "if opt.small"'),
      ('p.add_argument("--lr", default=1)\ncfg = load()\nlr = cfg.lr',
       'cfg.lr'))
  def test_values_that_depend_on_more(self, text, expected):
    found = self._read(text).values['lr']
    if isinstance(expected, str):
      self.assertIsInstance(found, expressions.Unknown)
    self.assertEqual(str(found), str(expected))

  @parameterized.parameters('x.y = 2', 'x["y"] = 2', 'x.update(y=2)')
  def test_parts_that_depend_on_more(self, change):
    values = self._read(
        f'x = dict(z=3)\nx.y = 1\ns = x\nif n:\n  {change}').values
    expected = {'z': 3, 'y': expressions.Unknown('set by "if n"')}
    self.assertEqual(values['x'], expected)
    self.assertEqual(values['s'], expected)  # Another name of the same.

  def test_a_part_of_one_branch_only(self):
    values = self._read('x = {}\nif n:\n  x.y = 1\nelse:\n  x.z = 1').values
    unknown = expressions.Unknown('set by "if n"')
    self.assertEqual(values['x'], {'y': unknown, 'z': unknown})

  def test_parameters_hide_names(self):
    [one, other, last] = self._read(
        'lr = 1\ncfg = dict(y=2)\ndef make(lr, *args, cfg=None):\n'
        '  call(lr=lr)\n  call(y=cfg.y)\ncall(lr=lr)').calls[-3:]
    self.assertEqual(one.arguments, {'lr': expressions.Unknown('lr')})
    self.assertEqual(other.arguments, {'y': 2})
    self.assertEqual(last.arguments, {'lr': 1})

  @parameterized.parameters(
      ('def f():\n  lr = 2', 1), ('async def f():\n  lr, x = 2, 3', 1),
      ('class C:\n  lr = 2', 1), ('def f():\n  lr *= 2', 1),
      ('class C:\n  def f(self, x):\n    for lr in x:\n      pass', 1),
      ('def f():\n  if x:\n    lr = 2', 1),
      ('def f():\n  lr = 2\n  def g():\n    nonlocal lr\n    lr = 3', 1),
      ('def f():\n  global lr\n  lr = 2', 2))
  def test_names_of_bodies_are_others(self, body, expected):
    self.assertEqual(self._read(f'lr = 1\n{body}').values['lr'], expected)

  def test_a_body_uses_its_own_names(self):
    [call] = self._read('lr = 1\ndef f():\n  lr = 2\n  g(lr=lr)').calls[-1:]
    self.assertEqual(call.arguments, {'lr': 2})

  def test_bodies_change_dictionaries_of_the_file(self):
    values = self._read(
        'cfg = dict(lr=1)\ndef f():\n  cfg["lr"] = 2\n  if x:\n'
        '    cfg["y"] = 3\ndef g():\n  cfg = dict(lr=4)\n  cfg["lr"] = 5\n'
        'def h(cfg):\n  cfg = make(cfg)'
    ).values
    self.assertEqual(
        values['cfg'], {'lr': 2, 'y': expressions.Unknown('set by "if x"')})

  def test_a_name_of_a_body_only(self):
    values = self._read('def f():\n  cfg = dict(lr=1)').values
    self.assertEqual(values['cfg'], {'lr': 1})

  @parameterized.parameters(
      ('p.add_argument("--lr", default=1)\np.set_defaults(lr=2)', 2),
      ('p.set_defaults(lr=2)', 2),
      ('p.add_argument("--lr", default=1)\np.set_defaults(**load())',
       expressions.Unknown('load()')))
  def test_defaults_of_arguments(self, text, expected):
    values = self._read(f'{text}\nargs = p.parse_args()\nlr = args.lr').values
    self.assertEqual(values['lr'], expected)

  @parameterized.parameters(
      b'\xef\xbb\xbflr = 1', b'# -*- coding: latin-1 -*-\nlr = 1  # \xe9')
  def test_every_coding_that_python_reads(self, content):
    path = self.create_tempfile(content=content, mode='wb').full_path
    self.assertEqual(reading.read(path).values['lr'], 1)

  def test_a_dictionary_in_itself_ends(self):
    self._convert(after="cfg['policy']['learn']['x'] = cfg")

  @parameterized.parameters(
      "sigma_type='conditioned', action_space='continuous'",
      "action_space='continuous', sigma_type='conditioned'")
  def test_the_order_of_keys_does_not_count(self, model):
    self.assertEqual(self._convert(model).flags['scale_from_state'], 'true')

  def test_notes_have_the_source(self):
    notes = self._convert('encoder_hidden_size_list=[n, 64]').notes
    self.assertEqual(notes['policy.model.encoder_hidden_size_list'],
                     'The value [n, 64] has no counterpart.')

  def test_all_algorithms_have_an_lstm(self):
    converted = from_pytorchrl.convert(self._read(
        'SAC.create_factory(lr_q=1)\nOffPolicyActor.create_factory('
        'recurrent_net=GRU, recurrent_net_kwargs={}, sequence_overlap=.5)'))
    assert converted is not None
    self.assertIn('--use_lstm --core=gru', converted.notes['recurrent_net'])
    self.assertNotIn('ddqn', converted.notes['recurrent_net'])
    self.assertIn('--lstm_units', converted.notes['recurrent_net_kwargs'])
    self.assertIn('--sequence_length', converted.notes['sequence_overlap'])


# See `mutations.py`.
MUTATIONS = (
    dict(file='compat/reading', catches='test_values_that_depend_on_more',
         rows=(
        ('branches follow each other', 'self.values = copy.deepcopy(before)',
         'pass'),
        ('no condition is known', 'if isinstance(condition, bool):',
         'if condition is True:'),
    )),
    dict(file='compat/expressions', catches='test_values_that_depend_on_more',
         rows=(
        ('all names have arguments',
         "'arg' in f'{node.id} {value.text}'.lower()", 'True'),
    )),
    dict(file='compat/reading', catches='test_parameters_hide_names', rows=(
        ('parameters are globals', 'for name in hidden:', 'for name in ():'),
    )),
    dict(file='compat/reading', catches='test_names_of_bodies_are_others',
         rows=(
        ('names of bodies are names of the file',
         'own = hidden | _assigned(node)', 'own = hidden'),
        ('no name is global', 'return own - outer', 'return own'),
        ('classes have the names of the file', 'visit_ClassDef = ', ''),
    )),
    dict(file='compat/reading', catches='test_defaults_of_arguments', rows=(
        ('no default is set later', "function.endswith('.set_defaults')",
         'False'),
    )),
)


if __name__ == '__main__':
  absltest.main()
