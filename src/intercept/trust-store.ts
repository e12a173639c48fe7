/** Trust stores of Java. */
import type { X509Certificate } from 'node:crypto'
import { BmpString, ObjectIdentifier, OctetString } from 'asn1js'
import { Attribute, AuthenticatedSafe, CertBag, ContentInfo, PFX, SafeBag, SafeContents } from 'pkijs'

const oids = {
  certBag: '1.2.840.113549.1.12.10.1.3',
  x509Certificate: '1.2.840.113549.1.9.22.1',
  friendlyName: '1.2.840.113549.1.9.20',
  /** Java trusts an entry only with this attribute, whose value is the usage it is trusted for. */
  trustedKeyUsage: '2.16.840.1.113894.746875.1.1',
  anyUsage: '2.5.29.37.0',
}

/** Certificates as a PKCS#12 file without a password (RFC 7292), which Java 17 and later read. */
export function writeTrustStore(certificates: readonly X509Certificate[]): Buffer {
  const safeBags = certificates.map(({ raw }, index) => {
    const name = new Attribute({ type: oids.friendlyName, values: [new BmpString({ value: `ca${index}` })] })
    const usage = new Attribute({
      type: oids.trustedKeyUsage,
      values: [new ObjectIdentifier({ value: oids.anyUsage })],
    })
    // To parse the 150 certificates of a system and write them again takes half a second.
    const bagValue = new CertBag({ certId: oids.x509Certificate, certValue: new OctetString({ valueHex: raw }) })
    return new SafeBag({ bagId: oids.certBag, bagValue, bagAttributes: [name, usage] })
  })
  const contents = dataOf(new SafeContents({ safeBags }).toSchema().toBER())
  const safe = new AuthenticatedSafe({ safeContents: [contents] })
  return Buffer.from(new PFX({ version: 3, authSafe: dataOf(safe.toSchema().toBER()) }).toSchema().toBER())
}

const dataOf = (bytes: ArrayBuffer) =>
  new ContentInfo({ contentType: ContentInfo.DATA, content: new OctetString({ valueHex: bytes }) })
