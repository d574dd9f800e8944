/**
 * The messages that a node has yet to send. They are sent in order, many at a time, and again until the database has taken
 * them.
 */
import * as Backoff from "@skein/runtime/Backoff"
import type { FleetError } from "@skein/server/Fleet"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { Outgoing } from "./backend.ts"
import { type Content, encode } from "./envelope.ts"
import { SentMessages } from "./resending.ts"

// The characters of the messages that wait. A message beyond is lost.
const maxPendingChars = 16 * 1024 * 1024

const maxBatchChars = 256 * 1024
const maxBatchMessages = 100
const backoff: Backoff.Backoff = { initialDelay: 50, maxDelay: 1_000 }

interface Pending extends Outgoing {
  /** Undefined for a message that is sent again. */
  readonly number: number | undefined
}

export class Outbox {
  readonly #node: number
  readonly #send: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, FleetError>
  readonly #now: () => number
  #pending: Array<Pending> = []
  readonly #sentMessages = new SentMessages()
  // The receipts to confirm, by the node that waits for them. They need no order.
  readonly #receipts = new Map<number, Array<number>>()
  readonly #hasMessages = Latch.makeUnsafe(false)
  #chars = 0
  #lost = 0
  // How many messages were added, which is also the number of the last one, and how many of them were sent.
  #added = 0
  #sent = 0
  #waiting: Array<{ readonly count: number; readonly done: Deferred.Deferred<void> }> = []

  constructor(
    node: number,
    send: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, FleetError>,
    now: () => number
  ) {
    this.#node = node
    this.#send = send
    this.#now = now
  }

  /** Adds a message for a node, or for all nodes. */
  add(to: number | undefined, content: Content): void {
    const number = this.#added + 1
    this.#push({ to, text: encode({ from: this.#node, number, content }), number })
  }

  /** Sends a node again what it has not received, after the message with the number. */
  resend(to: number, after: number): void {
    for (const text of this.#sentMessages.after(after, to, this.#now())) this.#push({ to, text, number: undefined })
  }

  #push(message: Pending): void {
    const { length } = message.text
    if (this.#chars + length > maxPendingChars) {
      this.#lost++
      return
    }
    this.#chars += length
    this.#added++
    this.#pending.push(message)
    this.#hasMessages.openUnsafe()
  }

  /** Confirms to a node that this one has received its change. */
  confirm(to: number, change: number): void {
    const changes = this.#receipts.get(to)
    if (changes === undefined) this.#receipts.set(to, [change])
    else changes.push(change)
    this.#hasMessages.openUnsafe()
  }

  /** Succeeds when the messages that were added before are sent. */
  readonly flushed: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#sent === this.#added) return Effect.void
    const done = Deferred.makeUnsafe<void>()
    this.#waiting.push({ count: this.#added, done })
    return Deferred.await(done)
  })

  /** Takes the next messages. */
  #take(): Array<Pending> {
    let chars = 0
    let count = 0
    while (count < this.#pending.length && count < maxBatchMessages && (count === 0 || chars < maxBatchChars)) {
      chars += this.#pending[count++]!.text.length
    }
    this.#chars -= chars
    const taken = this.#pending.slice(0, count)
    this.#pending = this.#pending.slice(count)
    this.#remember(taken)
    return taken
  }

  #restore(taken: ReadonlyArray<Pending>): void {
    this.#pending = [...taken, ...this.#pending]
    for (const { text } of taken) this.#chars += text.length
  }

  #remember(taken: ReadonlyArray<Pending>): void {
    for (const { number, ...message } of taken) {
      if (number !== undefined) this.#sentMessages.add(message, number, this.#now())
    }
  }

  #settle(count: number): void {
    this.#sent += count
    const waiting = this.#waiting
    this.#waiting = waiting.filter(({ count }) => count > this.#sent)
    for (const { count, done } of waiting) if (count <= this.#sent) Deferred.doneUnsafe(done, Effect.void)
  }

  /** Sends messages until the database has taken them. */
  #deliver(messages: ReadonlyArray<Outgoing>, attempt = 1): Effect.Effect<void> {
    return Effect.catch(this.#send(messages), (error) => {
      const again = Effect.andThen(
        Effect.sleep(Backoff.delay(backoff, attempt)),
        Effect.suspend(() => this.#deliver(messages, attempt + 1))
      )
      if (attempt > 1) return again
      return Effect.andThen(
        Effect.logWarning("failed to send messages to other nodes: they are sent again", error),
        again
      )
    })
  }

  /** Sends the messages that are pending. */
  readonly flush: Effect.Effect<void> = Effect.suspend(() => {
    this.#hasMessages.closeUnsafe()
    const taken = this.#take()
    const receipts = Array.from(this.#receipts, ([to, changes]): Outgoing => ({
      to,
      text: encode({ from: this.#node, content: { _tag: "Confirmed", changes } })
    }))
    this.#receipts.clear()
    if (taken.length + receipts.length === 0) return Effect.void
    const started = this.#now()
    const delivered = Effect.onInterrupt(
      this.#deliver([...taken, ...receipts]),
      () => Effect.sync(() => this.#restore(taken))
    )
    const next = Effect.suspend(() => {
      this.#settle(taken.length)
      // They were remembered when the first attempt began.
      if (this.#now() - started > 1_000) this.#remember(taken)
      const count = this.#lost
      this.#lost = 0
      const warned = count === 0
        ? Effect.void
        : Effect.logWarning("lost messages to other nodes", { count, maxPendingChars })
      return Effect.andThen(warned, this.flush)
    })
    return Effect.andThen(delivered, next)
  })

  /** Sends messages as they are added. */
  readonly run: Effect.Effect<never> = Effect.forever(
    Effect.andThen(Effect.suspend(() => this.#hasMessages.await), Effect.suspend(() => this.flush))
  )
}
