/**
 * Certificates as they are sent (RFC 5280), written and read with pkijs. It takes 60 ms to load: other files import this one
 * only when they need a certificate.
 */
import { createHash, createPublicKey, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { BitString, fromBER, Integer, OctetString, Utf8String } from 'asn1js'
import {
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  NameConstraints as ConstraintsExtension,
  Extension,
  ExtKeyUsage,
  GeneralName,
  GeneralNames,
  GeneralSubtree,
  PublicKeyInfo,
  RelativeDistinguishedNames,
  Time,
} from 'pkijs'
import { addressBytes, rangeBytes, rangeText } from './address-bytes.ts'
import type { NameConstraints, Subtrees } from './name-constraints.ts'

type SubtleKey = import('node:crypto').webcrypto.CryptoKey
type Hash = 'SHA-256' | 'SHA-384'

const oids = {
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
}
/** Forms of general names. */
const dnsName = 2
const ipAddress = 7
/** The bits of a key usage, and how many bits of their byte are not used. */
const signsAnything = { unused: 7, bits: 0x80 }
const signsCertificatesAndLists = { unused: 1, bits: 0x06 }

/** The first and the last moment of a certificate, milliseconds since the epoch. */
export interface Validity {
  readonly from: number
  readonly to: number
}

/** What signs: a private key in the form that pkijs takes. */
export interface Signer {
  readonly key: SubtleKey
  readonly hash: Hash
}

/** Undefined when clients would not accept its signatures. */
export function createSigner(key: KeyObject): Signer | undefined {
  const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {}
  const elliptic = (curve: string, hash: Hash): Signer => ({
    key: key.toCryptoKey({ name: 'ECDSA', namedCurve: curve }, false, ['sign']),
    hash,
  })
  if (namedCurve === 'prime256v1') return elliptic('P-256', 'SHA-256')
  if (namedCurve === 'secp384r1') return elliptic('P-384', 'SHA-384')
  if (key.asymmetricKeyType !== 'rsa' || modulusLength < 2_048) return undefined
  return { key: key.toCryptoKey({ name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, false, ['sign']), hash: 'SHA-256' }
}

export interface NewAuthority {
  readonly commonName: string
  readonly key: KeyObject
  readonly validity: Validity
  readonly constraints: NameConstraints | undefined
}

/** The certificate of an authority for leafs alone, signed with its own key. PEM. */
export async function writeAuthority({ commonName, key, validity, constraints }: NewAuthority): Promise<string> {
  const signer = createSigner(key)
  if (signer === undefined) throw new TypeError('the key cannot sign certificates')
  const publicKey = readPublicKey(createPublicKey(key))
  const keyId = keyIdOf(publicKey)
  const name = nameOf(commonName)
  const extensions = [
    extension('basicConstraints', new BasicConstraints({ cA: true, pathLenConstraint: 0 }), 'critical'),
    extension('keyUsage', keyUsage(signsCertificatesAndLists), 'critical'),
    extension('subjectKeyIdentifier', keyId),
    extension('authorityKeyIdentifier', new AuthorityKeyIdentifier({ keyIdentifier: keyId })),
    ...(constraints === undefined ? [] : [extension('nameConstraints', constraintsOf(constraints), 'critical')]),
  ]
  return sign({ subject: name, issuer: name, publicKey, validity, extensions }, signer)
}

/** Writes the certificate of one host, a name or an address without brackets. PEM. */
export type WriteLeaf = (host: string, validity: Validity) => Promise<string>

/** @param publicKey that of every leaf */
export function createLeafWriter(authority: X509Certificate, signer: Signer, publicKey: KeyObject): WriteLeaf {
  const issuer = Certificate.fromBER(authority.raw)
  const leafKey = readPublicKey(publicKey)
  // A name that is written again could be another one to the byte, which clients compare.
  const [issuerName, subject] = [copyOf(issuer.subject.valueBeforeDecode), copyOf(emptySequence)]
  const common = [
    extension('basicConstraints', new BasicConstraints({ cA: false }), 'critical'),
    extension('keyUsage', keyUsage(signsAnything), 'critical'),
    extension('extKeyUsage', new ExtKeyUsage({ keyPurposes: [oids.serverAuth] })),
    extension('authorityKeyIdentifier', new AuthorityKeyIdentifier({ keyIdentifier: keyIdOfIssuer(issuer) })),
  ]
  return (host, validity) => {
    const names = new GeneralNames({ names: [generalName(host)] })
    // Critical, as the subject is empty (RFC 5280 section 4.2.1.6). Names of more than 64 characters would not fit in one.
    const extensions = [...common, extension('subjectAltName', names, 'critical')]
    return sign({ subject, issuer: issuerName, publicKey: leafKey, validity, extensions }, signer)
  }
}

interface Content {
  readonly subject: RelativeDistinguishedNames
  readonly issuer: RelativeDistinguishedNames
  readonly publicKey: PublicKeyInfo
  readonly validity: Validity
  readonly extensions: Extension[]
}

async function sign(content: Content, { key, hash }: Signer): Promise<string> {
  const certificate = new Certificate({
    version: 2,
    serialNumber: new Integer({ valueHex: randomSerial() }),
    issuer: content.issuer,
    notBefore: timeOf(content.validity.from),
    notAfter: timeOf(content.validity.to),
    subject: content.subject,
    subjectPublicKeyInfo: content.publicKey,
    extensions: content.extensions,
  })
  await certificate.sign(key, hash)
  return String(new X509Certificate(Buffer.from(certificate.toSchema(true).toBER())))
}

/** 126 random bits below a bit that is set: positive, of 16 bytes, and never the same again (RFC 5280 section 4.1.2.2). */
function randomSerial(): Buffer<ArrayBuffer> {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0]! & 0x3f) | 0x40
  return bytes
}

/** UTCTime until 2049, then GeneralizedTime (RFC 5280 section 4.1.2.5). Both are in seconds. */
function timeOf(ms: number): Time {
  const value = new Date(Math.floor(ms / 1_000) * 1_000)
  return new Time({ type: value.getUTCFullYear() < 2050 ? 0 : 1, value })
}

const emptySequence = Uint8Array.of(0x30, 0x00).buffer

/** Without `valueBeforeDecode` pkijs would write an empty name as a name with an empty part. */
const copyOf = (der: ArrayBuffer) => new RelativeDistinguishedNames({ valueBeforeDecode: der })

function nameOf(commonName: string): RelativeDistinguishedNames {
  const value = new Utf8String({ value: commonName })
  return new RelativeDistinguishedNames({
    typesAndValues: [new AttributeTypeAndValue({ type: oids.commonName, value })],
  })
}

/** Something that pkijs or asn1js can write. */
type Encodable = { toSchema(): { toBER(): ArrayBuffer } } | { toBER(): ArrayBuffer }

function extension(name: keyof typeof oids, value: Encodable, critical?: 'critical'): Extension {
  const extnValue = ('toSchema' in value ? value.toSchema() : value).toBER()
  return new Extension({ extnID: oids[name], critical: critical !== undefined, extnValue })
}

const keyUsage = ({ unused, bits }: typeof signsAnything) =>
  new BitString({ unusedBits: unused, valueHex: Uint8Array.of(bits).buffer })

function readPublicKey(key: KeyObject): PublicKeyInfo {
  return PublicKeyInfo.fromBER(key.export({ type: 'spki', format: 'der' }))
}

/** SHA-1 of the bits of the key (RFC 5280 section 4.2.1.2): a name, nothing that has to be secure. */
function keyIdOf({ subjectPublicKey }: PublicKeyInfo): OctetString {
  const digest = createHash('sha1').update(subjectPublicKey.valueBlock.valueHexView).digest()
  return new OctetString({ valueHex: new Uint8Array(digest).buffer })
}

/** Other programs choose other names for their keys. */
function keyIdOfIssuer(issuer: Certificate): OctetString {
  const named = issuer.extensions?.find(({ extnID }) => extnID === oids.subjectKeyIdentifier)
  const { result } = named === undefined ? {} : fromBER(named.extnValue.valueBlock.valueHexView)
  return result instanceof OctetString ? result : keyIdOf(issuer.subjectPublicKeyInfo)
}

function generalName(host: string): GeneralName {
  if (isIP(host) === 0) return new GeneralName({ type: dnsName, value: host })
  return new GeneralName({ type: ipAddress, value: octets(addressBytes(host)) })
}

const octets = (bytes: Uint8Array) => new OctetString({ valueHex: new Uint8Array(bytes).buffer })

function constraintsOf({ permitted, excluded }: NameConstraints): ConstraintsExtension {
  const [permittedSubtrees, excludedSubtrees] = [subtreesOf(permitted), subtreesOf(excluded)]
  return new ConstraintsExtension({
    ...(permittedSubtrees.length > 0 && { permittedSubtrees }),
    ...(excludedSubtrees.length > 0 && { excludedSubtrees }),
  })
}

const subtreesOf = ({ names, ranges }: Subtrees): GeneralSubtree[] =>
  [
    ...names.map(name => new GeneralName({ type: dnsName, value: name })),
    ...ranges.map(range => new GeneralName({ type: ipAddress, value: octets(rangeBytes(range)) })),
  ].map(base => new GeneralSubtree({ base }))

/** The constraints on hosts that a certificate states; undefined when it has none. */
export function readConstraints({ raw }: X509Certificate): NameConstraints | undefined {
  const { extensions } = Certificate.fromBER(raw)
  const found = extensions?.find(({ extnID }) => extnID === oids.nameConstraints)?.parsedValue
  if (!(found instanceof ConstraintsExtension)) return undefined
  return { permitted: readSubtrees(found.permittedSubtrees), excluded: readSubtrees(found.excludedSubtrees) }
}

function readSubtrees(subtrees: readonly GeneralSubtree[] = []): Subtrees {
  const bases = subtrees.map(({ base }) => base)
  return {
    names: bases.filter(({ type }) => type === dnsName).map(({ value }) => String(value).toLowerCase()),
    ranges: bases.filter(({ type }) => type === ipAddress).map(({ value }) => rangeText(value.valueBlock.valueHexView)),
  }
}
