/**
 * Which scopes a server has required beyond those of its token, and when: the stops of step-up loops (2026-07-28,
 * Step-Up Authorization Flow).
 */
import type { OAuthError } from "../protocol/OAuthError.ts"
import type { Settings } from "./environment.ts"

/** At most so many sets of scopes that were not granted are remembered. */
const maxTried = 100

/** The step-ups of one server in this process. */
export const makeStepUps = (settings: Settings) => {
  const refused = new Set<string>()
  /** When scopes were requested, within `signInInterval`. */
  let times: ReadonlyArray<number> = []

  const clear = (): void => {
    refused.clear()
    times = []
  }

  /** Whether these scopes were requested before and not granted. */
  const wereRefused = (scopes: ReadonlyArray<string>): boolean => refused.has(keyOf(scopes))

  /** Counts a step-up. `false` if there were `maxStepUps` within `signInInterval`. */
  const begin = (time: number): boolean => {
    const { maxStepUps, signInInterval } = settings
    times = times.filter((at) => time - at < signInInterval)
    if (times.length >= maxStepUps) return false
    times = [...times, time]
    return true
  }

  /** Remembers scopes that were not granted. A person who was not reached, or is asked elsewhere, may still do it. */
  const failed = (scopes: ReadonlyArray<string>, { reason }: OAuthError): void => {
    const isFinal = reason._tag === "AuthorizationDenied" || (reason._tag === "TokenRequestFailed" && !reason.retryable)
    if (!isFinal) return
    if (refused.size >= maxTried) refused.clear()
    refused.add(keyOf(scopes))
  }

  return { clear, wereRefused, begin, failed }
}

const keyOf = (scopes: ReadonlyArray<string>): string => scopes.toSorted().join(" ")
