/**
 * The rounds of the requests of one server: the sealed state with which a request comes again is checked before anything runs, and
 * a round that ends with questions is answered with them and with the state of the next one.
 */
import type { InputRequests } from "@skein/protocol/InputRequired"
import * as Codec from "@skein/protocol/Codec"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import type { Answer, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Result from "effect/Result"
import { bytesOf, type Options } from "../../RequestState.ts"
import type { MethodTable } from "../methods/methodTable.ts"
import { type Answered, type Host, Round, type State } from "./round.ts"
import { RequestStateCodec } from "./requestStateCodec.ts"
import { canonicalJson } from "./digest.ts"

/** The methods that may be answered with questions (2026-07-28, "Supported Requests"). */
const asking: ReadonlyMap<string, Method.AnyRequest> = new Map(
  Method.requests.filter(({ inputRequired }) => inputRequired).map((method) => [method.name, method])
)

type Entries<A> = ReadonlyArray<readonly [key: string, value: A]>

/** A question that is open: its method, a digest of what was asked, and how long it may be answered. */
interface Pending {
  readonly method: string
  readonly asked: string
  /** When it is too late to answer it, where it was asked so, in milliseconds of Unix time. */
  readonly expires?: number | undefined
}

/** What is sealed. Whoever can read it has the key: what was sealed needs no check of its form. */
interface Sealed {
  /** The principal, the request with its params as a digest, and when it expires, in milliseconds of Unix time. */
  readonly principal: string | null
  readonly request: string
  readonly expires: number
  readonly rounds: number
  readonly answers: Entries<Answered>
  readonly onces: Entries<unknown>
  /** The questions that are open. Nothing else is accepted as an answer. */
  readonly pending: Entries<Pending>
}

const refused = (problem: string): Effect.Effect<never, McpError.McpError> =>
  Effect.fail(McpError.invalidParams(`Invalid params: ${problem}`))

/** A digest of what a request asks for: it must come again with the same params, in whatever order its members are. */
const digestOf = async ({ method, params }: RequestContext): Promise<string> => {
  const { _meta, inputResponses: _answers, requestState: _state, ...salient } = params ?? {}
  const bytes = new TextEncoder().encode(canonicalJson([method, salient]))
  return Base64Url.encode(new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", bytes)))
}

const principalOf = ({ caller: { principal } }: RequestContext): string | null => principal?.id ?? null

export class RoundTrips implements Host {
  readonly maxRounds: number
  readonly #methods: MethodTable
  readonly #maxSize: number
  readonly #timeToLive: number
  readonly #seal: RequestStateCodec
  /** One function for all requests: giving it to one costs nothing. */
  readonly #open: (exchange: RequestContext) => Round

  constructor(methods: MethodTable, options: Options) {
    this.#methods = methods
    this.maxRounds = options.maxRounds ?? 16
    this.#maxSize = options.maxStateChars ?? 65_536
    this.#timeToLive = Duration.toMillis(options.ttl ?? Duration.minutes(10))
    this.#seal = new RequestStateCodec(methods.description.serverInfo.name, options.keys?.map(bytesOf))
    this.#open = (exchange) => new Round(exchange, this, { rounds: 0, answers: new Map(), onces: new Map() })
  }

  /** Lets a request ask, where it may; and lets it go on where it was, if it comes with answers. */
  around(next: Dispatcher<McpRequest>): Dispatcher<McpRequest> {
    return (exchange) => {
      if (Revision.era(exchange.caller.revision) === "session" || !asking.has(exchange.method)) return next(exchange)
      exchange.rounds = this.#open
      const sealed = exchange.params?.["requestState"]
      if (sealed === undefined) return next(exchange)
      return Effect.flatMap(this.#resume(exchange, sealed), (state) => {
        exchange.round = new Round(exchange, this, state)
        return next(exchange)
      })
    }
  }

  /** "Servers MUST treat `requestState` as an attacker-controlled input … and MUST reject state that fails verification." */
  #resume(exchange: RequestContext, sealed: unknown): Effect.Effect<State, McpError.McpError> {
    if (typeof sealed !== "string") return refused("params.requestState: a string is expected")
    if (sealed.length > this.#maxSize) return refused("params.requestState: it is larger than any that was given")
    return Effect.gen({ self: this }, function*() {
      const opened = yield* Effect.promise(() => this.#seal.open(sealed))
      if (opened === undefined) return yield* refused("params.requestState: it is not what this server gave")
      const { answers, expires, onces, pending, principal, request, rounds }: Sealed = JSON.parse(opened)
      if (principal !== principalOf(exchange)) {
        return yield* refused("params.requestState: it was given to somebody else")
      }
      const now = yield* Clock.currentTimeMillis
      if (now >= expires) return yield* refused("params.requestState: it has expired")
      if (request !== (yield* digest(exchange))) {
        return yield* refused("params.requestState: it belongs to a request with another method or other params")
      }
      return { rounds, answers: yield* read(exchange, answers, pending, now), onces: new Map(onces) }
    })
  }

  answer(round: Round): Effect.Effect<Answer, McpError.McpError> {
    return Effect.gen({ self: this }, function*() {
      const { exchange, open, state: { answers, rounds } } = round
      const now = yield* Clock.currentTimeMillis
      const sealed: Sealed = {
        principal: principalOf(exchange),
        request: yield* digest(exchange),
        expires: now + this.#timeToLive,
        rounds: rounds + 1,
        answers: [...answers],
        onces: [...round.done],
        pending: Array.from(open, ([key, { asked, request: { method }, timeout }]) => [
          key,
          { method, asked, expires: timeout === undefined ? undefined : now + timeout }
        ])
      }
      const requestState = yield* Effect.promise(() => this.#seal.seal(JSON.stringify(sealed)))
      if (requestState.length > this.#maxSize) {
        const message = `The answers so far need ${requestState.length} characters of requestState: at most ` +
          `${this.#maxSize} are allowed`
        return yield* Effect.fail(new McpError.McpError({ reason: "InternalError", message }))
      }
      const inputRequests = Object.fromEntries(
        Array.from(open, ([key, { request }]) => [key, request])
      ) as InputRequests
      const result = { resultType: "input_required", inputRequests, requestState } as const
      return this.#methods.finish(asking.get(exchange.method)!, result, exchange)
    })
  }
}

/** Params that nest too deep to be written once more are nobody's. */
const digest = (exchange: RequestContext): Effect.Effect<string, McpError.McpError> =>
  Effect.tryPromise({
    try: () => digestOf(exchange),
    catch: () => McpError.invalidParams("Invalid params: they nest too deep")
  })

/** Adds the answers that came. What nobody asked for is ignored; what is missing will be asked for again, unless it is late. */
const read = (
  { caller: { revision }, params }: RequestContext,
  answers: Sealed["answers"],
  pending: Sealed["pending"],
  now: number
): Effect.Effect<State["answers"], McpError.McpError> => {
  const all = new Map(answers)
  const given = params?.["inputResponses"] ?? {}
  if (!isObject(given)) return refused("params.inputResponses: an object is expected")
  for (const [key, { asked, expires, method: name }] of pending) {
    if (expires !== undefined && now >= expires) all.set(key, { asked })
    else if (Object.hasOwn(given, key)) {
      const answer = given[key]
      const method = Method.inputRequest(name, revision)!
      const result = Codec.decode(method.result, revision, answer, `params.inputResponses[${JSON.stringify(key)}]`)
      if (Result.isFailure(result)) return refused(result.failure)
      all.set(key, { asked, answer: answer as JsonObject })
    }
  }
  return Effect.succeed(all)
}
