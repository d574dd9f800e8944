/**
 * Opens the streams of answers that take long. A proxy cannot tell a silent call from a dead server, and gives it up after
 * its read timeout, 60 seconds in most proxies. A stream gets keep-alive comments.
 */
import type { RequestRunner } from "@skein/runtime/RequestRunner"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { ExpiryTimer } from "./expiryTimer.ts"

/** The answer to a suspended request of which nothing was sent yet. */
export interface SilentAnswer {
  /** Begins its stream, unless it has begun, or its client has left. */
  readonly beginStream: () => void
}

/**
 * The silent answers of an endpoint. One timer serves all of them. It does not stop with the last answer, but when it finds
 * none: so short calls, one after the other, arm it once per `delay` and not once per call. The delay is in milliseconds; with
 * 0 no stream is opened.
 */
export const makeSilentAnswers = (delay: number, runner: RequestRunner, context: Context.Context<never>) => {
  const timer = new ExpiryTimer(() => runner.now(), Effect.runForkWith(context), (now) => begin(now))
  /** When each answer begins its stream, the next one first: the delay of all is the same. */
  const deadlines = new Map<SilentAnswer, number>()

  /** Adds an answer, whose request has suspended at this time of the monotonic clock. */
  const add = (answer: SilentAnswer, now: number): void => {
    if (delay === 0) return
    deadlines.set(answer, now + delay)
    timer.arm(now + delay)
  }

  const remove = (answer: SilentAnswer): void => void deadlines.delete(answer)

  /** Begins the streams that are due. Returns the time of the next check. */
  const begin = (now: number): number => {
    for (const [answer, deadline] of deadlines) {
      if (deadline > now) return deadline
      deadlines.delete(answer)
      answer.beginStream()
    }
    return Infinity
  }

  /** Stops the timer, because the endpoint has closed. */
  const close = (): void => timer.disarm()

  return { add, remove, close }
}

export type SilentAnswers = ReturnType<typeof makeSilentAnswers>
