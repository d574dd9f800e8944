/**
 * One stream of server-sent events, which outlives the HTTP connections that it is sent on.
 *
 * Messages go to the event log, and to the connection if there is one. A client that reconnects gets the messages that
 * it has missed from the log, and then the stream continues on the new connection. The latest connection replaces the
 * earlier one: a broken connection can look alive for minutes, and would lock out its own client.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Principal } from "@skein/runtime/Connection"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constTrue } from "effect/Function"
import type { HttpAnswer } from "../messages/adapter.ts"
import type { Store } from "../limits/eventStore.ts"
import { type Claim, type Share, SimpleClaim } from "../limits/load.ts"
import { idOf, type StreamPlace } from "./eventId.ts"
import type { HttpSessionBase } from "./sessionBase.ts"
import * as sse from "../messages/sse.ts"

/** The session of a stream, as the stream sees it. */
export interface StreamingSession extends HttpSessionBase {
  /** Stores the messages for clients that reconnect; undefined if clients cannot resume a stream. */
  readonly log: Store | undefined
  /** Whether the client supports events without data. Older clients treat them as invalid messages. */
  readonly primes: boolean
  /** Whether a stream goes on without the events that the log has lost. */
  readonly skipsLostEvents: (stream: number) => boolean
  /** Answers a client that resumes a complete stream after its last stored event. */
  readonly noEventsLeft: (place: StreamPlace, answer: HttpAnswer) => void
  /** Called when a stream gets a connection. `longLived` is true if the client has opened it by GET. */
  readonly connected: (stream: Stream, longLived: boolean) => void
  readonly disconnected: (stream: Stream, longLived: boolean) => void
}

export class Stream implements Claim {
  readonly kind = "streams"
  readonly isWaiting = false
  share: Share | undefined = undefined
  bytes = 0
  readonly number: number
  /** The principal of the latest GET. */
  principal: Principal | undefined = undefined
  /** The id of its request, in the ids of its events: see `StreamPlace`. */
  readonly #request: JsonRpc.Id | undefined
  readonly #session: StreamingSession
  #answer: HttpAnswer | undefined
  #keepAliveSlot = 0
  #longLived = false
  // The number of the last event, and whether the stream is complete.
  #last: number
  #complete: boolean
  #buffer: sse.SlowReaderBuffer | undefined
  /** The connection that the stream is being resumed on. */
  #resuming: HttpAnswer | undefined

  /** `last` is the number of its last event, if another node has sent it. */
  constructor(
    session: StreamingSession,
    number: number,
    { complete = false, last = 0, request }: {
      readonly complete?: boolean
      readonly last?: number
      readonly request?: JsonRpc.Id | undefined
    } = {}
  ) {
    this.#session = session
    this.number = number
    this.#complete = complete
    this.#last = last
    this.#request = request
  }

  get #retryDelay(): number {
    return this.#session.owner.endpoint.options.bounds.retryDelay
  }

  /** Whether a client is connected to it, as far as that is known. */
  get connected(): boolean {
    return this.#answer !== undefined || this.#resuming !== undefined
  }

  /** Begins the stream. */
  open(answer: HttpAnswer, longLived: boolean): void {
    this.#endConnections()
    this.#prime(answer, this.#last)
    this.#enter(answer, longLived)
  }

  /**
   * Sends the head of a connection, and the event after which the client resumes: the one that it received last.
   *
   * "The server SHOULD immediately send an SSE event consisting of an event ID and an empty data field in order to prime the
   * client to reconnect" (2025-11-25, transports, sending messages). Official clients forget the ids of earlier connections.
   */
  #prime(answer: HttpAnswer, event: number): void {
    answer.open(200, sse.headers)
    if (this.#session.primes) answer.write(sse.prime(idOf(this.#placeOf(event)), this.#retryDelay))
  }

  /** Sends a message. Returns `false` while the client is slow. */
  send(data: string): boolean {
    const event = ++this.#last
    const { client, id, log, owner } = this.#session
    if (log !== undefined) {
      log.append(id, this.number, event, data, client)
      owner.endpoint.load.relieve(client)
    }
    const answer = this.#answer
    if (answer === undefined || answer.isClosed) return true
    return this.#buffer!.write(answer, sse.message(data, this.#idOf(event))) ?? this.#cut(answer)
  }

  /** Ends the stream after its last message. */
  complete(): void {
    if (this.#complete) return
    this.#complete = true
    this.#session.owner.streamCompleted(this.#session, this.number)
    this.#leave()?.end()
  }

  /** Ends the stream, because its session has ended. */
  abandon(): void {
    this.#complete = true
    this.#endConnections()
  }

  #endConnections(): void {
    this.#leave()?.end()
    this.#resuming?.end()
    this.#resuming = undefined
  }

  /**
   * Ends the connection, but not the stream, and sends the client the time to wait before it reconnects ("If the server
   * does close the connection prior to terminating the SSE stream, it SHOULD send an SSE event with a standard `retry`
   * field before", 2025-11-25).
   */
  disconnect(retry = this.#retryDelay): void {
    const answer = this.#leave()
    if (answer === undefined) return
    answer.write(sse.retry(retry))
    answer.end()
  }

  /** Ends the connection; the client can open the stream again. */
  evict(): void {
    this.disconnect()
  }

  /** Succeeds as soon as the client takes more, or has left. */
  get drained(): Effect.Effect<void> {
    return this.#answer?.drained ?? Effect.void
  }

  /**
   * Continues on a connection whose client has seen the events up to `after`. Calls `refuse` if the events after that
   * are no longer available, or with `true` if they cannot be read now.
   */
  resume(answer: HttpAnswer, after: number, refuse: (hasFailed: boolean) => void): void {
    if (after > this.#last && !this.#complete) return refuse(false)
    this.#endConnections()
    this.#resuming = answer
    this.#catchUp(answer, after, refuse)
  }

  #catchUp(answer: HttpAnswer, after: number, refuse: ((hasFailed: boolean) => void) | undefined): void {
    if (after === this.#last && !this.#complete) return this.#caughtUp(answer, refuse !== undefined)
    const read = this.#session.log?.read(this.#session.id, this.number, after) ?? Effect.undefined
    this.#session.owner.fork(Effect.onExit(read, (exit) =>
      Effect.suspend(() => {
        // Another connection has taken over, or the session has ended.
        if (this.#resuming !== answer) return Effect.void
        const missed = Exit.isFailure(exit) ? undefined : exit.value ?? this.#withoutLog
        if (missed === undefined) {
          this.#resuming = undefined
          if (refuse === undefined) answer.end()
          else refuse(Exit.isFailure(exit))
          return Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
            ? Effect.logError("failed to read the event log", exit.cause)
            : Effect.void
        }
        if (this.#complete && missed.length === 0 && after >= this.#last) {
          this.#resuming = undefined
          if (refuse === undefined) answer.end()
          else this.#session.noEventsLeft(this.#placeOf(after), answer)
          return Effect.void
        }
        if (refuse !== undefined) {
          if (missed.length === 0) this.#prime(answer, after)
          else answer.open(200, sse.headers)
        }
        const replay = Effect.suspend(() => this.#replay(answer, after, missed, 0))
        this.#session.owner.fork(Effect.onInterrupt(replay, () => Effect.sync(() => answer.end())))
        return Effect.void
      })))
  }

  /**
   * Sends the missed events, no faster than the client takes them: it may request the same events many times
   * concurrently.
   */
  #replay(answer: HttpAnswer, after: number, missed: ReadonlyArray<string>, from: number): Effect.Effect<void> {
    for (let at = from; at < missed.length; at++) {
      if (this.#resuming !== answer) return Effect.void
      if (answer.write(sse.message(missed[at]!, this.#idOf(after + at + 1)))) continue
      const { client, owner: { endpoint: { load } } } = this.#session
      // The missed events that wait for the client: the store may have deleted them. The client can resume again.
      const claim: Claim = new SimpleClaim(undefined, constTrue, () => {
        load.remove(claim)
        answer.abort()
      })
      load.add(claim, client, missed.reduce((sum, data, index) => index > at ? sum + data.length : sum, 0))
      return Effect.flatMap(
        Effect.ensuring(answer.drained, Effect.sync(() => load.remove(claim))),
        () => this.#replay(answer, after, missed, at + 1)
      )
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
   * The events to send if the log has lost them: none on the standalone stream of an endpoint that is alone. A client that
   * could not resume it would receive no further notifications. In a fleet it begins again.
   */
  get #withoutLog(): ReadonlyArray<string> | undefined {
    return this.#session.skipsLostEvents(this.number) ? [] : undefined
  }

  #caughtUp(answer: HttpAnswer, first: boolean): void {
    this.#resuming = undefined
    if (first) this.#prime(answer, this.#last)
    this.#enter(answer, true)
  }

  #enter(answer: HttpAnswer, longLived: boolean): void {
    if (answer.isClosed) return
    this.#answer = answer
    this.#longLived = longLived
    this.#buffer = new sse.SlowReaderBuffer(this.#session.owner.endpoint.options.bounds.maxUnsentChars)
    this.#keepAliveSlot = this.#session.owner.endpoint.keepAlive.add(answer)
    this.#session.connected(this, longLived)
    answer.onClose(() => answer === this.#answer && void this.#leave())
  }

  /** Detaches the connection from the stream, and returns it. */
  #leave(): HttpAnswer | undefined {
    const answer = this.#answer
    if (answer === undefined) return undefined
    this.#answer = undefined
    this.#session.owner.endpoint.keepAlive.remove(answer, this.#keepAliveSlot)
    this.#session.disconnected(this, this.#longLived)
    return answer
  }

  #cut(answer: HttpAnswer): true {
    this.#leave()
    answer.abort()
    const message = `closed a stream: its client does not read, and ${this.#buffer!.size} characters are unsent`
    this.#session.owner.fork(Effect.logWarning(message))
    return true
  }

  #placeOf(event: number): StreamPlace {
    return { stream: this.number, event, request: this.#request }
  }

  #idOf(event: number): string | undefined {
    return this.#session.log === undefined ? undefined : idOf(this.#placeOf(event))
  }
}

/**
 * Answers with an empty part of a stream: the client asks later for the events after the same one. Clients before 2025-11-25
 * would read an event that has only an id as a message.
 */
export const reconnect = ({ owner, primes }: StreamingSession, place: StreamPlace, answer: HttpAnswer): void => {
  const { retryDelay } = owner.endpoint.options.bounds
  answer.open(200, sse.headers)
  answer.write(primes ? sse.prime(idOf(place), retryDelay) : sse.retry(retryDelay))
  answer.end()
}
