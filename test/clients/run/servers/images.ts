/** A registry of container images (OCI Distribution 1.1): one image, whose layer is the large file in the mode `down`. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { greeting, isStreamed } from '../modes.ts'
import { type Server, sendFile, sendInParts } from '../upstream.ts'

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const part = (type: string, bytes: Buffer) => ({
  ...{ mediaType: `application/vnd.oci.image.${type}`, digest: digestOf(bytes), size: bytes.length },
})
const manifestType = 'application/vnd.oci.image.manifest.v1+json'

export const answerImages: Server = asked => {
  const { mode, rest, req, res, file } = asked
  if (req.url === '/v2/') res.end('{}')
  else if (rest === '/manifests/latest') {
    const layer = mode === 'down' ? readFileSync(file) : Buffer.from('small')
    const manifest = {
      ...{ schemaVersion: 2, mediaType: manifestType, config: part('config.v1+json', configOf(layer)) },
      ...{ layers: [part('layer.v1.tar', layer)], annotations: { greeting } },
    }
    res.setHeader('Content-Type', manifestType).end(JSON.stringify(manifest))
  } else if (rest.startsWith('/blobs/')) {
    const layer = mode === 'down' ? readFileSync(file) : Buffer.from('small')
    const config = configOf(layer)
    if (rest === `/blobs/${digestOf(config)}`) res.end(config)
    else if (mode === 'down') sendFile(asked, file)
    else if (isStreamed(mode)) sendInParts(asked, layer)
    else res.end(layer)
  } else return false
  return true
}

const configOf = (layer: Buffer): Buffer =>
  Buffer.from(
    JSON.stringify({
      ...{ architecture: 'amd64', os: 'linux', config: {} },
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
    }),
  )
