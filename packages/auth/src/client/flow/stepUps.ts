/**
 * Which scopes a server has required beyond those of its token, and when: the stops of step-up loops (2026-07-28,
 * Step-Up Authorization Flow).
 */
import type { OAuthError } from "../protocol/OAuthError.ts"
import type { Settings } from "./environment.ts"

/** At most so many sets of scopes that were not granted are remembered. */
const maxTried = 100

/** The step-ups of one server in this process. */
export class StepUps {
  readonly #settings: Settings
  readonly #refused = new Set<string>()
  /** When scopes were requested, within `signInInterval`. */
  #times: ReadonlyArray<number> = []

  constructor(settings: Settings) {
    this.#settings = settings
  }

  clear(): void {
    this.#refused.clear()
    this.#times = []
  }

  /** Whether these scopes were requested before and not granted. */
  wereRefused(scopes: ReadonlyArray<string>): boolean {
    return this.#refused.has(keyOf(scopes))
  }

  /** Counts a step-up. `false` if there were `maxStepUps` within `signInInterval`. */
  begin(time: number): boolean {
    const { maxStepUps, signInInterval } = this.#settings
    this.#times = this.#times.filter((at) => time - at < signInInterval)
    if (this.#times.length >= maxStepUps) return false
    this.#times = [...this.#times, time]
    return true
  }

  /** Remembers scopes that were not granted. A person who was not reached, or is asked elsewhere, may still do it. */
  failed(scopes: ReadonlyArray<string>, { reason }: OAuthError): void {
    const isFinal = reason._tag === "AuthorizationDenied" || (reason._tag === "TokenRequestFailed" && !reason.retryable)
    if (!isFinal) return
    if (this.#refused.size >= maxTried) this.#refused.clear()
    this.#refused.add(keyOf(scopes))
  }
}

const keyOf = (scopes: ReadonlyArray<string>): string => scopes.toSorted().join(" ")
