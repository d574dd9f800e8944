/**
 * The questions that wait for an answer of their page. Each has a token that only its page receives, so that no other
 * client answers it: in `_meta` of the result, which hosts do not give to models.
 *
 * A question ends with its answer, after its timeout, with its session, or with the server.
 */
import { quote } from "@skein/protocol/Text"
import * as ClientKey from "@skein/runtime/ClientKey"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import * as Options from "@skein/runtime/Options"
import * as RandomId from "@skein/runtime/RandomId"
import { McpRequest, type SessionPeer } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Scope from "effect/Scope"
import { AskError, InputTooLarge, InvalidQuestion, NotOpen, TooManyOpen } from "./AskError.ts"

/** The bounds of the open questions of a ready app. */
export interface Limits {
  /** The number of open questions of all clients: 1,000 by default. A further call fails. Raise it for many users. */
  readonly maxOpen?: number | undefined
  /**
   * The number of open questions of one client: 20 by default. A client is a principal, else a network address (the first
   * 64 bits of an IPv6 address), else a session. A further call fails. Raise it if many users share an address.
   */
  readonly maxOpenPerClient?: number | undefined
}

/** The time and the bounds of a ready app. */
export interface Bounds {
  /** How long the user may take to answer: 10 minutes by default. Then the question is closed. */
  readonly timeout?: Duration.Input | undefined
  /** The bounds of the open questions. */
  readonly limits?: Limits | undefined
}

interface FlatBounds extends Limits, Pick<Bounds, "timeout"> {}

/** The most characters of all texts of a question. */
const maxQuestionChars = 20_000
/** The most characters of the arguments of a call, as JSON. The server retains them until the answer. */
const maxInputChars = 65_536

/** A question that waits. */
export interface Entry<A> {
  readonly value: A
  /** The client that it is counted for: see `ClientKey`. */
  readonly client: string | undefined
  readonly principal: string | undefined
  readonly peer: SessionPeer | undefined
}

const notOpen = (): AskError =>
  new AskError(
    new NotOpen({ message: "This question is no longer open. It was answered already, or too much time has passed" })
  )

/** The open questions of one app. */
export type OpenQuestions<A> = Effect.Success<ReturnType<typeof make<A>>>

/** Makes the open questions of one app. `closed` is called for each one that ends without an answer. */
export const make = Effect.fnUntraced(function*<A>({ limits, timeout }: Bounds, closed: (value: A) => void = () => {}) {
  const bounds = Options.resolve<FlatBounds>(
    { timeout, ...limits },
    { maxOpen: 1_000, maxOpenPerClient: 20 },
    { timeout: "10 minutes" }
  )
  const timers = yield* FiberMap.make<string>()
  // Timers have the services of the server: those of a request would retain it.
  const run = yield* FiberMap.runtime(timers)()
  const entries = new Map<string, Entry<A>>()
  const counts = new KeyedCounter()
  // The sessions whose end is watched.
  const watched = new WeakSet<SessionPeer>()

  const remove = (token: string): Entry<A> | undefined => {
    const entry = entries.get(token)
    if (entry === undefined) return undefined
    entries.delete(token)
    counts.release(entry.client)
    return entry
  }

  /** Closes a question without an answer. */
  const close = (token: string): void => {
    const entry = remove(token)
    if (entry !== undefined) closed(entry.value)
  }

  /** Closes a question after a time, in the place of the time that was set before. */
  const closeAfter = (token: string, timeoutMs: number): void => {
    run(token, Effect.andThen(Effect.sleep(timeoutMs), Effect.sync(() => close(token))))
  }

  /** Closes the questions of a session when it ends. */
  const watch = (peer: SessionPeer | undefined): Effect.Effect<void> => {
    if (peer === undefined || watched.has(peer)) return Effect.void
    watched.add(peer)
    return Scope.addFinalizer(
      peer.scope,
      Effect.suspend(() => {
        const tokens = [...entries].flatMap(([token, entry]) => entry.peer === peer ? [token] : [])
        for (const token of tokens) close(token)
        return Effect.forEach(tokens, (token) => FiberMap.remove(timers, token), { discard: true })
      })
    )
  }

  /** Returns the question of a token, which stays open. */
  const get = (token: string): Effect.Effect<Entry<A>, AskError, McpRequest> =>
    Effect.flatMap(McpRequest, ({ caller }) => {
      const entry = entries.get(token)
      return entry === undefined || entry.principal !== caller.principal?.id
        ? Effect.fail(notOpen())
        : Effect.succeed(entry)
    })

  return {
    closeAfter,
    get,
    /** Checks the texts of a question. The first is its title. */
    check: (texts: ReadonlyArray<string | undefined>): Effect.Effect<void, AskError> => {
      const total = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)
      const problem = (texts[0] ?? "").trim() === ""
        ? "has no title"
        : total > maxQuestionChars
        ? `has ${total} characters, more than ${maxQuestionChars}`
        : undefined
      if (problem === undefined) return Effect.void
      const message = `The question ${quote(texts[0] ?? "")} ${problem}`
      return Effect.fail(new AskError(new InvalidQuestion({ message })))
    },
    /** Opens a question, and returns its token. */
    add: (value: A): Effect.Effect<string, AskError, McpRequest> =>
      Effect.flatMap(McpRequest, (request) => {
        const { maxOpen, maxOpenPerClient } = bounds
        const chars = JSON.stringify(request.params?.["arguments"] ?? {}).length
        if (chars > maxInputChars) {
          const message = `The arguments have ${chars} characters, more than ${maxInputChars}`
          return Effect.fail(new AskError(new InputTooLarge({ message })))
        }
        const client = ClientKey.ofRequest(request)
        const reached = counts.acquire(client, maxOpen, maxOpenPerClient)
        if (reached !== undefined) {
          const bound = reached === "max" ? `maxOpen (${maxOpen})` : `maxOpenPerClient (${maxOpenPerClient})`
          const message = `Too many questions wait for an answer: ${bound}. Let the user answer them first`
          return Effect.fail(new AskError(new TooManyOpen({ message })))
        }
        const token = RandomId.make(32)
        const { peer } = request
        entries.set(token, { value, client, principal: request.caller.principal?.id, peer })
        closeAfter(token, bounds.timeout)
        return Effect.as(watch(peer), token)
      }),
    /** Takes the question of a token, if `accepts` does not fail. It cannot be answered again then. */
    take: <E>(
      token: string,
      accepts: (value: A) => Effect.Effect<void, E>
    ): Effect.Effect<A, AskError | E, McpRequest> =>
      Effect.uninterruptible(
        Effect.flatMap(get(token), ({ value }) =>
          Effect.flatMap(accepts(value), () => {
            remove(token)
            return Effect.as(FiberMap.remove(timers, token), value)
          }))
      )
  }
})
