import { useEffect, useRef, useState } from 'preact/hooks'
import { mostPixels, type Picture } from '../body/picture.ts'

interface PictureProps {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly picture: Picture
}

/**
 * Draws a picture of the request. It is decoded to pixels and never becomes a document, so nothing in it runs or loads; of a
 * moving one the first frame is drawn.
 */
export function PictureView({ bytes, picture: { type, width, height } }: PictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [problem, setProblem] = useState<string>()
  const name = `${type.slice(6).toUpperCase()}, ${width} × ${height} pixels`
  useEffect(() => {
    if (width * height > mostPixels) return setProblem('The picture is too large to be drawn here.')
    let isCurrent = true
    createImageBitmap(new Blob([bytes], { type })).then(
      bitmap => isCurrent && draw(canvas.current, bitmap),
      () => isCurrent && setProblem('The picture cannot be decoded.'),
    )
    return () => {
      isCurrent = false
    }
  }, [bytes])
  return (
    <figure class="picture">
      {problem === undefined ? (
        <canvas ref={canvas} role="img" aria-label={`Picture of the request: ${name}`} width={0} height={0} />
      ) : (
        <p class="notice warn">{problem}</p>
      )}
      <figcaption class="hint">{name}</figcaption>
    </figure>
  )
}

function draw(canvas: HTMLCanvasElement | null, bitmap: ImageBitmap): void {
  if (canvas !== null) {
    canvas.width = bitmap.width
    canvas.height = bitmap.height
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
  }
  bitmap.close()
}
