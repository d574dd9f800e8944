/**
 * The answers that wait in memory for their clients, and the rate at which these must read.
 */
import * as Effect from "effect/Effect"
import type * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"
import { clientOf } from "../../base/client.ts"
import type { FixedBounds } from "../../base/fixedBounds.ts"
import type { AnswerWatcher, HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { Claim, Load } from "./load.ts"

// How often the answers are checked within the time that a client has.
const checks = 4

/** An answer of which a part is unsent. */
interface UnsentAnswer extends Claim {
  readonly answer: HttpAnswer
  /** When the client last had enough read, in milliseconds, and how much its connection had taken then. */
  since: number
  taken: number
}

/**
 * Counts the unsent part of each answer among the load, and closes the connections of clients that read too slowly. One
 * fiber checks all answers. It runs only while an answer is unsent.
 */
export const makeSlowReaders = (
  load: Load,
  bounds: FixedBounds,
  now: () => number,
  context: Context.Context<never>
): AnswerWatcher => {
  const bytesPerTimeout = Math.max(1, bounds.minReadBytesPerSecond * bounds.sendTimeout / 1_000)
  const answers = new Map<HttpAnswer, UnsentAnswer>()
  let fiber: Fiber.Fiber<never> | undefined

  const log = (event: Effect.Effect<void>): void => void Effect.runForkWith(context)(event)

  const claimOf = (answer: HttpAnswer): UnsentAnswer => {
    const claim: UnsentAnswer = {
      kind: undefined,
      isWaiting: true,
      share: undefined,
      bytes: 0,
      answer,
      since: now(),
      taken: answer.taken ?? 0,
      // Closes the connection. Sessions continue, and their clients can resume the stream.
      evict: () => {
        const unsent = answer.unsent ?? 0
        // The client may have read most of it since it was counted.
        if (unsent < claim.bytes / 2) return load.charge(claim, unsent - claim.bytes)
        load.remove(claim)
        answer.abort()
        const message =
          `closed a connection: ${unsent} bytes of its answers are unsent, and too much is retained (maxRetainedBytes)`
        // An answer that can never be sent is a fault of the server.
        log(unsent > load.maxBytes ? Effect.logWarning(message) : Effect.logDebug(message))
      }
    }
    return claim
  }

  const unsent = (answer: HttpAnswer, request: HttpRequest): void => {
    const known = answers.get(answer)
    const bytes = answer.unsent ?? 0
    if (known !== undefined) return load.charge(known, bytes - known.bytes)
    if (bytes === 0) return
    const added = claimOf(answer)
    answers.set(answer, added)
    fiber ??= Effect.runForkWith(context)(checking)
    load.add(added, clientOf(request), bytes)
  }

  const sent = (answer: HttpAnswer): void => {
    const known = answers.get(answer)
    if (known === undefined) return
    answers.delete(answer)
    load.remove(known)
    rest()
  }

  const check = Effect.sync(() => {
    const time = now()
    for (const [answer, claim] of answers) {
      const { unsent = 0, taken = 0 } = answer
      if (unsent === 0 || claim.share === undefined) {
        answers.delete(answer)
        load.remove(claim)
        continue
      }
      load.charge(claim, unsent - claim.bytes)
      if (taken - claim.taken >= bytesPerTimeout) {
        claim.since = time
        claim.taken = taken
      } else if (time - claim.since >= bounds.sendTimeout) close(claim, unsent)
    }
    rest()
  })
  const checking = Effect.forever(Effect.andThen(Effect.sleep(Math.ceil(bounds.sendTimeout / checks)), check))

  const rest = (): void => {
    if (answers.size > 0) return
    fiber?.interruptUnsafe()
    fiber = undefined
  }

  const close = (claim: UnsentAnswer, unsent: number): void => {
    answers.delete(claim.answer)
    load.remove(claim)
    claim.answer.abort()
    const message =
      `closed a connection: its client reads less than ${bounds.minReadBytesPerSecond} bytes per second, ` +
      `and ${unsent} bytes are unsent`
    log(Effect.logDebug(message))
  }

  return { unsent, sent }
}
