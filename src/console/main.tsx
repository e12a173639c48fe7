import { render } from 'preact'

const place = document.getElementById('app')
if (place !== null) render(<main>Agent Gateway</main>, place)
