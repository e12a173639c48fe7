/**
 * A registry of container images (OCI Distribution 1.1): one image, whose layer is the large file in the modes `down` and `up`.
 * In `up` it takes the image as well, and tells its layer at `/pushed`.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { greeting, isStreamed } from '../modes.ts'
import { type Asked, type Server, sendFile, sendInParts } from '../upstream.ts'

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const part = (type: string, bytes: Buffer) => ({
  ...{ mediaType: `application/vnd.oci.image.${type}`, digest: digestOf(bytes), size: bytes.length },
})
const manifestType = 'application/vnd.oci.image.manifest.v1+json'

export const answerImages: Server = asked => {
  const { mode, rest, req, res, file } = asked
  const isLarge = mode === 'down' || mode === 'up'
  if (req.url === '/v2/') res.end('{}')
  else if (mode === 'up' && isPush(asked)) takeImage(asked)
  else if (rest === '/manifests/latest') {
    const layer = isLarge ? readFileSync(file) : Buffer.from('small')
    const manifest = {
      ...{ schemaVersion: 2, mediaType: manifestType, config: part('config.v1+json', configOf(layer)) },
      ...{ layers: [part('layer.v1.tar', layer)], annotations: { greeting } },
    }
    res.setHeader('Content-Type', manifestType).end(JSON.stringify(manifest))
  } else if (rest.startsWith('/blobs/')) {
    const layer = isLarge ? readFileSync(file) : Buffer.from('small')
    const config = configOf(layer)
    if (rest === `/blobs/${digestOf(config)}`) res.end(config)
    else if (isLarge) sendFile(asked, file)
    else if (isStreamed(mode)) sendInParts(asked, layer)
    else res.end(layer)
  } else return false
  return true
}

/** Sizes and hashes of the blobs that were pushed, by the URL of mode and client. */
const pushed = new Map<string, string[]>()

const isPush = ({ rest, req }: Asked): boolean =>
  rest === '/pushed' || (req.method !== 'GET' && /^\/(?:blobs|manifests)\//.test(rest))

function takeImage({ rest, req, res, seen, url }: Asked): void {
  const blobs = pushed.get(url) ?? []
  pushed.set(url, blobs)
  if (rest === '/pushed') res.end(`${blobs.join('\n')}\n`)
  else if (req.method === 'HEAD') res.writeHead(404).end()
  else if (req.method === 'POST') res.writeHead(202, { Location: `/v2${new URL(url).pathname}/blobs/uploads/1` }).end()
  else {
    const isBlob = req.method === 'PATCH'
    req.on('end', () => {
      if (isBlob) blobs.push(`${seen.bodyBytes} ${seen.sha256}`)
      const location = `/v2${new URL(url).pathname}/blobs/uploads/1`
      res.writeHead(isBlob ? 202 : 201, { Location: location, Range: `0-${seen.bodyBytes - 1}` }).end()
    })
  }
}

const configOf = (layer: Buffer): Buffer =>
  Buffer.from(
    JSON.stringify({
      ...{ architecture: 'amd64', os: 'linux', config: {} },
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
    }),
  )
