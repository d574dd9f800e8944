/**
 * The answers that wait in memory for their clients, and the rate at which these must read.
 */
import * as Effect from "effect/Effect"
import type * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"
import { clientOf } from "../../base/client.ts"
import type { FixedBounds } from "../../base/fixedBounds.ts"
import type { AnswerWatcher, HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { Claim, Load, Share } from "./load.ts"

// How often the answers are checked within the time that a client has.
const checks = 4

/** An answer of which a part is unsent. */
class UnsentAnswer implements Claim {
  readonly kind = undefined
  readonly isWaiting = true
  share: Share | undefined = undefined
  bytes = 0
  readonly answer: HttpAnswer
  /** When the client last had enough read, in milliseconds, and how much its connection had taken then. */
  since: number
  taken: number
  readonly #load: Load
  readonly #log: (event: Effect.Effect<void>) => void

  constructor(answer: HttpAnswer, load: Load, now: number, log: (event: Effect.Effect<void>) => void) {
    this.answer = answer
    this.since = now
    this.taken = answer.taken ?? 0
    this.#load = load
    this.#log = log
  }

  /** Closes the connection. Sessions continue, and their clients can resume the stream. */
  evict(): void {
    const unsent = this.answer.unsent ?? 0
    // The client may have read most of it since it was counted.
    if (unsent < this.bytes / 2) return this.#load.charge(this, unsent - this.bytes)
    this.#load.remove(this)
    this.answer.abort()
    const message =
      `closed a connection: ${unsent} bytes of its answers are unsent, and too much is retained (maxRetainedBytes)`
    // An answer that can never be sent is a fault of the server.
    const isTooLarge = unsent > this.#load.maxBytes
    this.#log(isTooLarge ? Effect.logWarning(message) : Effect.logDebug(message))
  }
}

/**
 * Counts the unsent part of each answer among the load, and closes the connections of clients that read too slowly. One
 * fiber checks all answers. It runs only while an answer is unsent.
 */
export class SlowReaders implements AnswerWatcher {
  readonly #answers = new Map<HttpAnswer, UnsentAnswer>()
  readonly #load: Load
  readonly #now: () => number
  readonly #context: Context.Context<never>
  readonly #bounds: FixedBounds
  readonly #bytesPerTimeout: number
  #fiber: Fiber.Fiber<never> | undefined = undefined

  constructor(
    load: Load,
    bounds: FixedBounds,
    now: () => number,
    context: Context.Context<never>
  ) {
    this.#load = load
    this.#now = now
    this.#context = context
    this.#bounds = bounds
    this.#bytesPerTimeout = Math.max(1, bounds.minReadBytesPerSecond * bounds.sendTimeout / 1_000)
  }

  unsent(answer: HttpAnswer, request: HttpRequest): void {
    const known = this.#answers.get(answer)
    const bytes = answer.unsent ?? 0
    if (known !== undefined) return this.#load.charge(known, bytes - known.bytes)
    if (bytes === 0) return
    const added = new UnsentAnswer(answer, this.#load, this.#now(), this.#log)
    this.#answers.set(answer, added)
    this.#fiber ??= Effect.runForkWith(this.#context)(this.#checks)
    this.#load.add(added, clientOf(request), bytes)
  }

  sent(answer: HttpAnswer): void {
    const known = this.#answers.get(answer)
    if (known === undefined) return
    this.#answers.delete(answer)
    this.#load.remove(known)
    this.#rest()
  }

  readonly #log = (event: Effect.Effect<void>): void => void Effect.runForkWith(this.#context)(event)

  get #checks(): Effect.Effect<never> {
    const check = Effect.sync(() => this.#check(this.#now()))
    return Effect.forever(Effect.andThen(Effect.sleep(Math.ceil(this.#bounds.sendTimeout / checks)), check))
  }

  #check(now: number): void {
    for (const [answer, claim] of this.#answers) {
      const { unsent = 0, taken = 0 } = answer
      if (unsent === 0 || claim.share === undefined) {
        this.#answers.delete(answer)
        this.#load.remove(claim)
        continue
      }
      this.#load.charge(claim, unsent - claim.bytes)
      if (taken - claim.taken >= this.#bytesPerTimeout) {
        claim.since = now
        claim.taken = taken
      } else if (now - claim.since >= this.#bounds.sendTimeout) this.#close(claim, unsent)
    }
    this.#rest()
  }

  #rest(): void {
    if (this.#answers.size > 0) return
    this.#fiber?.interruptUnsafe()
    this.#fiber = undefined
  }

  #close(claim: UnsentAnswer, unsent: number): void {
    this.#answers.delete(claim.answer)
    this.#load.remove(claim)
    claim.answer.abort()
    const message =
      `closed a connection: its client reads less than ${this.#bounds.minReadBytesPerSecond} bytes per second, ` +
      `and ${unsent} bytes are unsent`
    this.#log(Effect.logDebug(message))
  }
}
