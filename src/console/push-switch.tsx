import { useEffect, useState } from 'preact/hooks'
import type { Failure } from './api.ts'
import { Failed } from './parts/states.tsx'
import { hasPush, isPhoneOfApple, isSubscribed, switchOff, switchOn } from './push.ts'

export function PushSwitch() {
  const [isOn, setIsOn] = useState<boolean>()
  const [failure, setFailure] = useState<Failure>()
  const [problem, setProblem] = useState('')
  useEffect(() => void isSubscribed().then(setIsOn), [])
  if (document.querySelector('meta[name=push]') === null) return null
  if (!hasPush()) {
    return isPhoneOfApple() ? (
      <p class="hint">For notifications on an iPhone, add this page to the home screen and open it there.</p>
    ) : null
  }
  const press = async () => {
    setProblem('')
    try {
      setFailure(await (isOn === true ? switchOff() : switchOn()))
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
    setIsOn(await isSubscribed())
  }
  return (
    <>
      <p>Notifications on this device, also while the console is closed. They name the agent and the rule.</p>
      <p class="actions">
        <button type="button" aria-pressed={isOn === true} disabled={isOn === undefined} onClick={() => void press()}>
          {isOn === true ? 'Switch notifications off' : 'Switch notifications on'}
        </button>
      </p>
      {problem !== '' && <p role="alert">{problem}</p>}
      {failure && <Failed failure={failure} />}
    </>
  )
}
