import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { runCommand } from '../../src/cli/commands.ts'
import { fakeShell } from '../fixtures/shell.ts'
import { testdir } from '../fixtures/testdir.ts'

const command = async (...args: readonly string[]) => {
  const shell = fakeShell(['policy', ...args])
  return { code: await runCommand(shell), out: shell.printed.join('\n'), err: shell.complained.join('\n') }
}

const cookbook = new URL('../../policies/cookbook/', import.meta.url)
const templates = readdirSync(cookbook).filter(name => !name.endsWith('.test.yaml'))

t.test('each template becomes a policy whose check and tests pass, with every rule tested', async t => {
  const folder = testdir(t, { 'gateway.yaml': 'Policy: { Directory: mine }\n', mine: {} })
  const config = ['--config', `${folder}/gateway.yaml`]
  t.equal(templates.length, 10)
  for (const file of templates) {
    const template = file.replace('.yaml', '')
    t.equal((await command('init', `my-${template}`, '--template', template, ...config)).code, 0, template)
    t.match(readFileSync(`${folder}/mine/my-${template}.yaml`, 'utf8'), new RegExp(`^name: my-${template}$`, 'm'))
  }
  t.match(await command('check', `${folder}/mine`, '--strict', ...config), {
    code: 0,
    out: 'policies: 10, mistakes: 0',
  })
  const tested = await command('test', `${folder}/mine`, '--coverage', ...config)
  t.equal(tested.code, 0, tested.out)
})

t.test('nothing is written over, and a mistake is explained', async t => {
  const folder = testdir(t, { 'gateway.yaml': '', policies: {} })
  const config = ['--config', `${folder}/gateway.yaml`]
  t.equal((await command('init', 'mine', '--template', 'github', ...config)).code, 0)
  t.match(await command('init', 'mine', '--template', 'slack', ...config), { code: 1, err: /is there already/ })
  t.match(await command('init', 'other', '--template', 'githup', ...config), { code: 2, err: /did you mean github/ })
  for (const args of [[], ['x'], ['../x', '--template', 'github'], ['x.test', '--template', 'github']])
    t.equal((await command('init', ...args, ...config)).code, 2, args.join(' '))
})

t.test('a folder that is missing is made, and one that cannot be is named', async t => {
  const folder = testdir(t, { 'gateway.yaml': 'Policy: { Directory: new/policies }\n', file: '' })
  const made = await command('init', 'x', '--template', 'github', '--config', `${folder}/gateway.yaml`)
  t.match(made, { code: 0, out: `${folder}/new/policies/x.test.yaml` })
  const into = [
    '--config',
    `${testdir(t, { 'gateway.yaml': `Policy: { Directory: ${folder}/file/x }\n` })}/gateway.yaml`,
  ]
  t.match(await command('init', 'x', '--template', 'github', ...into), {
    code: 1,
    err: /cannot be written \(ENOTDIR\)/,
  })
})
