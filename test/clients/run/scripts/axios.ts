import { createReadStream } from 'node:fs'
import axios from 'axios'
import { main } from './calls.ts'

const validateStatus = () => true

await main({
  async call(url, method, data) {
    const answer = await axios.request({ url, method, data, validateStatus, responseType: 'text' })
    return [answer.status, answer.data]
  },
  async *stream(url) {
    yield* (await axios.get(url, { responseType: 'stream' })).data
  },
  async up(url, file) {
    return (await axios.post(url, createReadStream(file), { responseType: 'text' })).data
  },
})
