/** A thread that does nothing but look after the first one. */
import { workerData } from 'node:worker_threads'
import { watchFirstThread } from './watchdog.ts'

watchFirstThread(workerData)
