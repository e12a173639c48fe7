/** What a picture says of itself. It is decoded only when it is not too large for that. */

export interface Picture {
  readonly type: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  /** Pixels. */
  readonly width: number
  readonly height: number
}

/** Pixels of a picture that is drawn: four bytes each. */
export const mostPixels = 40_000_000

/** By its first bytes, whatever Content-Type says. */
export function pictureOf(bytes: Uint8Array): Picture | undefined {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < 30) return undefined
  const is = (text: string, at: number) => [...text].every((char, index) => bytes[at + index] === char.charCodeAt(0))
  if (is('\x89PNG\r\n\x1a\n', 0)) return { type: 'image/png', width: data.getUint32(16), height: data.getUint32(20) }
  if (is('GIF8', 0)) return { type: 'image/gif', width: data.getUint16(6, true), height: data.getUint16(8, true) }
  if (is('RIFF', 0) && is('WEBP', 8)) return webp(data)
  return is('\xff\xd8\xff', 0) ? jpeg(data) : undefined
}

function webp(data: DataView): Picture | undefined {
  const type = 'image/webp'
  const three = (at: number) => data.getUint16(at, true) + data.getUint8(at + 2) * 65_536
  switch (data.getUint32(12)) {
    // VP8, VP8L, VP8X.
    case 0x56503820:
      return { type, width: data.getUint16(26, true) & 0x3fff, height: data.getUint16(28, true) & 0x3fff }
    case 0x5650384c: {
      const bits = data.getUint32(21, true)
      return { type, width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 }
    }
    case 0x56503858:
      return { type, width: three(24) + 1, height: three(27) + 1 }
    default:
      return undefined
  }
}

/** The frame header says the size: the markers C0 to CF, of which C4, C8 and CC are others (ITU T.81 table B.1). */
function jpeg(data: DataView): Picture | undefined {
  for (let at = 2; at + 9 < data.byteLength && data.getUint8(at) === 0xff; at += 2 + data.getUint16(at + 2)) {
    const marker = data.getUint8(at + 1)
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { type: 'image/jpeg', width: data.getUint16(at + 7), height: data.getUint16(at + 5) }
    }
  }
  return undefined
}
