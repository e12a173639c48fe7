import { X509Certificate } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { certificateFindings } from '../../../src/cli/doctor/certificates.ts'
import { openStoredAuthority } from '../../../src/intercept/stored-authority.ts'
import { createClock } from '../../fixtures/clock.ts'
import { doctorParts } from '../../fixtures/doctor.ts'
import { testdir } from '../../fixtures/testdir.ts'

const day = 86_400_000

/** Certificate and key, which nobody else may read. */
function filesOf(t: Test, certificate: string, key: string) {
  const files = { CertificateFile: `${testdir(t)}/certificate.pem`, KeyFile: `${testdir(t)}/key.pem` }
  for (const [file, from] of [
    [files.CertificateFile, certificate],
    [files.KeyFile, key],
  ] as const)
    writeFileSync(file, readFileSync(new URL(`../../fixtures/${from}`, import.meta.url)), { mode: 0o600 })
  return files
}

t.test('a certificate is in order until 14 days before its end, and has failed at its end', async t => {
  const Tls = filesOf(t, 'tls/cert.pem', 'tls/key.pem')
  const parts = await doctorParts(t, { System: { Server: { Tls } } })
  const end = new X509Certificate(readFileSync(Tls.CertificateFile)).validToDate.getTime()
  const at = async (ms: number) => (await certificateFindings({ ...parts, clock: createClock(ms) }))[0]
  t.match(await at(end - 15 * day), { level: 'ok', text: /valid for 15 days$/, remedy: null })
  t.match(await at(end - 1.5 * day), { level: 'warn', text: /valid for 1 day$/, remedy: /SIGHUP/ })
  t.match(await at(end), { level: 'fail', text: 'the certificate for clients has expired', remedy: /SIGHUP.*clock/ })
  const start = new X509Certificate(readFileSync(Tls.CertificateFile)).validFromDate.getTime()
  t.match(await at(start), { level: 'ok' })
  t.match(await at(start - 1_000), {
    ...{ level: 'fail', text: `the certificate for clients is not valid before ${new Date(start).toISOString()}` },
    remedy: `If it should be valid now, set the clock of this machine, which says ${new Date(start - 1_000).toISOString()}.`,
  })
})

t.test('the authority of the forward proxy is read from its files, or from the data folder', async t => {
  const Ca = filesOf(t, 'ca/issuing.pem', 'ca/issuing-key.pem')
  const given = await doctorParts(t, { ForwardProxy: { Enabled: true, Ca } })
  t.match(await certificateFindings(given), [{ text: /^the authority of the forward proxy / }])
  const own = await doctorParts(t, { ForwardProxy: { Enabled: true }, Storage: { DataDirectory: '.' } })
  t.strictSame(await certificateFindings(own), [], 'none is made')
  await openStoredAuthority(own.folder, own.clock.now())
  t.match(await certificateFindings(own), [
    { level: 'ok', text: /^the authority of the forward proxy is valid for 36/ },
  ])
})
