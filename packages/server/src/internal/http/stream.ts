/**
 * One stream of server-sent events, which outlives the connections that it is sent on.
 *
 * What is said goes to the log, and to the connection, where there is one. A client that comes back for the rest gets what it has
 * missed from the log, and then the stream goes on where the client is now. The connection that came last has it: one that
 * broke without a word looks alive for minutes, and would keep its own client out.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { HttpAnswer } from "./adapter.ts"
import type { Store } from "./eventStore.ts"
import type { KeepAlive } from "./keepAlive.ts"
import * as sse from "./sse.ts"
import { Unsent } from "./slowReaderBuffer.ts"

/** What a stream needs of its session. */
export interface Owner {
  readonly id: string
  /** Where what is said is kept for a client that comes back; undefined where none can. */
  readonly log: Store | undefined
  /** How many characters may wait in memory for a reader that is slow. */
  readonly maxUnsentChars: number
  /** How many milliseconds a client should wait before it comes back. */
  readonly retry: number
  /** Whether the client knows events without data. Older ones take them for broken messages. */
  readonly primes: boolean
  readonly keepAlive: KeepAlive
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** A stream is sent on a connection now, or on none any more. `listening` where the client came for it alone, by GET. */
  readonly attached: (stream: Stream, listening: boolean) => void
  readonly detached: (stream: Stream, listening: boolean) => void
  readonly completed: (stream: Stream) => void
}

export class Stream {
  readonly number: number
  readonly #owner: Owner
  #answer: HttpAnswer | undefined
  #slot = 0
  #listening = false
  // The number of the last event, and whether there will be no more.
  #last = 0
  #complete: boolean
  #unsent: Unsent | undefined
  /** The connection that the stream is being resumed on. */
  #resuming: HttpAnswer | undefined

  constructor(owner: Owner, number: number, complete = false) {
    this.#owner = owner
    this.number = number
    this.#complete = complete
  }

  /** Whether a client is connected to it, as far as that is known. */
  get connected(): boolean {
    return this.#answer !== undefined || this.#resuming !== undefined
  }

  /** Sends the head of the stream. */
  open(answer: HttpAnswer, listening: boolean): void {
    this.#leave()?.end()
    this.#resuming?.end()
    this.#resuming = undefined
    answer.open(200, sse.headers)
    // "The server SHOULD immediately send an SSE event consisting of an event ID and an empty data field in order to prime the
    // client to reconnect" (2025-11-25, transports, sending messages).
    if (this.#owner.primes) answer.write(sse.prime(this.#idOf(this.#last)!, this.#owner.retry))
    this.#enter(answer, listening)
  }

  /** Says a message. `false` when the client is slow. */
  say(data: string): boolean {
    const event = ++this.#last
    this.#owner.log?.append(this.#owner.id, this.number, event, data)
    const answer = this.#answer
    if (answer === undefined || answer.over) return true
    return this.#write(answer, sse.message(data, this.#idOf(event)))
  }

  /** Nothing more will be said: the stream ends. */
  complete(): void {
    if (this.#complete) return
    this.#complete = true
    this.#owner.completed(this)
    this.#leave()?.end()
  }

  /** Ends the stream for good. What was said is of no use to anybody any more. */
  abandon(): void {
    this.#complete = true
    this.#leave()?.end()
    this.#resuming?.end()
    this.#resuming = undefined
  }

  /**
   * Ends the connection, but not the stream: the client is told when to come back ("If the server does close the connection
   * prior to terminating the SSE stream, it SHOULD send an SSE event with a standard `retry` field before", 2025-11-25).
   */
  disconnect(retry = this.#owner.retry): void {
    const answer = this.#leave()
    if (answer === undefined) return
    answer.write(sse.retry(retry))
    answer.end()
  }

  /** Succeeds as soon as the client takes more, or is gone. */
  get drained(): Effect.Effect<void> {
    return this.#answer?.drained ?? Effect.void
  }

  /**
   * Goes on with a connection that has seen the events up to one. `refuse` says why it does not: the events after that are not
   * there any more.
   */
  resume(answer: HttpAnswer, after: number, refuse: () => void): void {
    if (after > this.#last && !this.#complete) return refuse()
    this.#leave()?.end()
    this.#resuming?.end()
    this.#resuming = answer
    this.#catchUp(answer, after, refuse)
  }

  #catchUp(answer: HttpAnswer, after: number, refuse: (() => void) | undefined): void {
    if (after === this.#last && !this.#complete) return this.#caughtUp(answer, refuse !== undefined)
    const read = this.#owner.log?.read(this.#owner.id, this.number, after) ?? Effect.undefined
    this.#owner.fork(Effect.onExit(read, (exit) =>
      Effect.suspend(() => {
        // Another connection came meanwhile, or the session is over.
        if (this.#resuming !== answer) return Effect.void
        const missed = Exit.isFailure(exit) ? undefined : exit.value ?? this.#instead
        if (missed === undefined) {
          this.#resuming = undefined
          if (refuse === undefined) answer.end()
          else refuse()
          return Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
            ? Effect.logError("The event log could not be read", exit.cause)
            : Effect.void
        }
        // Nothing is left to be said: "204 No Content" is how the standard of these streams has a client stop reconnecting.
        if (this.#complete && missed.length === 0 && after >= this.#last) {
          this.#resuming = undefined
          if (refuse === undefined) answer.end()
          else answer.reply(204, {}, "")
          return Effect.void
        }
        if (refuse !== undefined) answer.open(200, sse.headers)
        const replay = Effect.suspend(() => this.#replay(answer, after, missed, 0))
        this.#owner.fork(Effect.onInterrupt(replay, () => Effect.sync(() => answer.end())))
        return Effect.void
      })))
  }

  /** Says what was missed, no faster than the client takes it: it may ask for the same any number of times at once. */
  #replay(answer: HttpAnswer, after: number, missed: ReadonlyArray<string>, from: number): Effect.Effect<void> {
    for (let at = from; at < missed.length; at++) {
      if (this.#resuming !== answer) return Effect.void
      if (answer.write(sse.message(missed[at]!, this.#idOf(after + at + 1)))) continue
      return Effect.flatMap(answer.drained, () => this.#replay(answer, after, missed, at + 1))
    }
    if (this.#resuming !== answer) return Effect.void
    const event = after + missed.length
    if (event < this.#last && missed.length > 0) this.#catchUp(answer, event, undefined)
    else if (!this.#complete) this.#caughtUp(answer, false)
    else {
      this.#resuming = undefined
      answer.end()
    }
    return Effect.void
  }

  /**
   * What there is where the log has lost the events. On the stream that belongs to no request that is nothing: a client that could not
   * come back to it would hear of no change any more.
   */
  get #instead(): ReadonlyArray<string> | undefined {
    return this.number === 0 ? [] : undefined
  }

  #caughtUp(answer: HttpAnswer, first: boolean): void {
    this.#resuming = undefined
    if (first) answer.open(200, sse.headers)
    this.#enter(answer, true)
  }

  #enter(answer: HttpAnswer, listening: boolean): void {
    if (answer.over) return
    this.#answer = answer
    this.#listening = listening
    this.#unsent = new Unsent(this.#owner.maxUnsentChars)
    this.#slot = this.#owner.keepAlive.add(answer)
    this.#owner.attached(this, listening)
    answer.onClose(() => answer === this.#answer && void this.#leave())
  }

  /** The connection is no longer the stream's. */
  #leave(): HttpAnswer | undefined {
    const answer = this.#answer
    if (answer === undefined) return undefined
    this.#answer = undefined
    this.#owner.keepAlive.remove(answer, this.#slot)
    this.#owner.detached(this, this.#listening)
    return answer
  }

  #write(answer: HttpAnswer, text: string): boolean {
    return this.#unsent!.write(answer, text) ?? this.#cut(answer)
  }

  #cut(answer: HttpAnswer): true {
    this.#leave()
    answer.abort()
    const message = `A client does not read: its connection was cut, with ${this.#unsent!.size} characters unsent`
    this.#owner.fork(Effect.logWarning(message))
    return true
  }

  #idOf(event: number): string | undefined {
    return this.#owner.log === undefined ? undefined : `${this.number}-${event}`
  }
}

/** Reads the id of an event: its stream, and its number there. */
export const parseId = (id: string): { readonly stream: number; readonly event: number } | undefined => {
  const found = /^(0|[1-9]\d{0,14})-(0|[1-9]\d{0,14})$/.exec(id)
  return found === null ? undefined : { stream: Number(found[1]), event: Number(found[2]) }
}
