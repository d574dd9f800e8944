/**
 * The rounds of the stateless requests of one server. The `requestState` of a repeated request is verified before its
 * handler runs, and a round that ends with input requests is answered with them and with the state for the next round.
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import type { InputRequests } from "@skein/protocol/InputRequired"
import * as Codec from "@skein/protocol/Codec"
import * as Json from "@skein/protocol/Json"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import { sha256Base64Url } from "@skein/runtime/Digest"
import type { Answer, Dispatcher, Exchange, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { withheld } from "../../Logging.ts"
import { bytesOf, type Options, resolve } from "../../RequestState.ts"
import { internals } from "../catalog/catalogState.ts"
import type { MethodTable } from "./methodTable.ts"
import { makeRequestStateCodec } from "./requestStateCodec.ts"
import { type Answered, Round, type RoundOwner, type RoundState } from "./round.ts"

/** The methods that may be answered with input requests (2026-07-28, "Supported Requests"). */
const supportedMethods: ReadonlyMap<string, Method.AnyRequest> = new Map(
  Method.requests.filter(({ inputRequired }) => inputRequired).map((method) => [method.name, method])
)

type Entries<A> = ReadonlyArray<readonly [key: string, value: A]>

/** An input request that waits for its response: its method, a digest of its content, and its deadline. */
interface Pending {
  readonly method: string
  readonly asked: string
  /** Its deadline, if it has one, in milliseconds of Unix time. */
  readonly expires?: number | undefined
}

/** The content of a `requestState`. It is encrypted and authenticated, so its form needs no validation. */
interface SealedState {
  /** The id of the principal, a digest of the request, and the expiry in milliseconds of Unix time. */
  readonly principal: string | null
  readonly request: string
  readonly expires: number
  readonly rounds: number
  readonly answers: Entries<Answered>
  readonly onces: Entries<unknown>
  /** The input requests that wait for responses. Other responses are ignored. */
  readonly pending: Entries<Pending>
}

const refused = (problem: string): Effect.Effect<never, McpError.McpError> =>
  Effect.fail(McpError.invalidParams(`Invalid params: ${problem}`))

const principalOf = ({ caller: { principal } }: RequestContext): string | null => principal?.id ?? null

/** Makes the function through which requests are dispatched, so that handlers can ask the client in rounds. */
export const makeRoundTrips = (methods: MethodTable, options: Options) => {
  const { lifetime, maxChars, maxRounds } = resolve(options)
  const { stateKeys } = methods.catalog[internals]
  let made: ReturnType<typeof makeRequestStateCodec> | undefined
  /** Made when it is first needed: the keys of an endpoint are known after the server is built. */
  const codec = () =>
    made ??= makeRequestStateCodec(
      methods.description.serverInfo.name,
      (options.keys ?? stateKeys.ofEndpoint)?.map(bytesOf)
    )

  let hasWarned = false
  /** A client can send such states on purpose, so that one of them is a warning. */
  const warnForeign = Effect.suspend(() => {
    const log = hasWarned ? Effect.logDebug : Effect.logWarning
    hasWarned = true
    return withheld(log(
      "requestState of another instance, or of an earlier start of this server: the client must begin again. Set the same " +
        "keys on all instances (SKEIN_STATE_KEYS, or RequestState.layer)"
    ))
  })

  /**
   * "Servers MUST treat `requestState` as an attacker-controlled input … and MUST reject state that fails
   * verification."
   */
  const resume = (request: RequestContext, sealed: unknown): Effect.Effect<RoundState, McpError.McpError> => {
    if (typeof sealed !== "string") return refused("params.requestState: a string is expected")
    if (sealed.length > maxChars) {
      return refused("params.requestState: it is longer than every state that this server issues")
    }
    return Effect.gen(function*() {
      const opened = yield* Effect.promise(() => codec().open(sealed))
      if (opened === undefined) {
        if (yield* Effect.promise(() => codec().isForeign(sealed))) yield* warnForeign
        return yield* refused("params.requestState: this server has not issued it")
      }
      const { answers, expires, onces, pending, principal, request: digested, rounds } = Json.parse(
        opened
      ) as SealedState
      if (principal !== principalOf(request)) {
        return yield* refused("params.requestState: it was issued to another principal")
      }
      const now = yield* Clock.currentTimeMillis
      if (now >= expires) return yield* refused("params.requestState: it has expired")
      if (digested !== (yield* digest(request))) {
        return yield* refused("params.requestState: it belongs to a request with another method or other params")
      }
      return { rounds, answers: yield* read(request, answers, pending, now), onces: new Map(onces) }
    })
  }

  const answer = Effect.fnUntraced(function*(round: Round): Effect.fn.Return<Answer, McpError.McpError> {
    const { request, open, state: { answers, rounds } } = round
    const now = yield* Clock.currentTimeMillis
    const sealed: SealedState = {
      principal: principalOf(request),
      request: yield* digest(request),
      expires: now + lifetime,
      rounds: rounds + 1,
      answers: [...answers],
      onces: [...round.done],
      pending: Array.from(open, ([key, { asked, request: { method }, timeout }]) => [
        key,
        { method, asked, expires: timeout === undefined ? undefined : now + timeout }
      ])
    }
    const requestState = yield* Effect.promise(() => codec().seal(Json.exactText(sealed)!))
    if (requestState.length > maxChars) {
      const message = `requestState exceeds maxChars (${maxChars}): the responses so far need ` +
        `${requestState.length} characters`
      return yield* Effect.fail(new McpError.McpError({ reason: "InternalError", message }))
    }
    const inputRequests = Object.fromEntries(
      Array.from(open, ([key, { request }]) => [key, request])
    ) as InputRequests
    const result = { resultType: "input_required", inputRequests, requestState } as const
    return methods.encodeResult(supportedMethods.get(request.method)!, result, request)
  })

  const owner: RoundOwner = { maxRounds, answer }
  /**
   * One function for all requests, so that no request allocates one. A middleware may have changed the params. The client
   * repeats the ones that it sent, and the state is bound to them.
   */
  const startRound = ({ received }: Exchange): Round =>
    new Round(received, owner, { rounds: 0, answers: new Map(), onces: new Map() })

  /**
   * Handles a request. If it may be answered with input requests, its handler can start a round of them, and a request that
   * carries a `requestState` continues its rounds.
   */
  return (request: RequestContext, next: Dispatcher<McpRequest>): ReturnType<Dispatcher<McpRequest>> => {
    const { caller, method } = request
    if (Revision.era(caller.revision) === "session" || !supportedMethods.has(method)) return next(request)
    const { exchange } = request
    exchange.rounds = startRound
    const sealed = request.params?.["requestState"]
    if (sealed === undefined || sealed === null) return next(request)
    return Effect.flatMap(resume(request, sealed), (state) => {
      exchange.round = new Round(request, owner, state)
      return next(request)
    })
  }
}

/**
 * A digest of a request: it must be repeated with the same params, in any order of their members. Refuses params that
 * nest too deep to be encoded.
 */
const digest = ({ method, params }: RequestContext): Effect.Effect<string, McpError.McpError> => {
  const { _meta, inputResponses: _answers, requestState: _state, ...salient } = params ?? {}
  return Effect.flatMap(
    Effect.try({
      try: () => CanonicalJson.stringify([method, salient]),
      catch: () => McpError.invalidParams("Invalid params: they nest too deep")
    }),
    sha256Base64Url
  )
}

/**
 * Adds the responses that arrived. Unsolicited ones are ignored; missing ones are requested again before their
 * deadline.
 */
const read = (
  { caller: { revision }, params }: RequestContext,
  answers: SealedState["answers"],
  pending: SealedState["pending"],
  now: number
): Effect.Effect<RoundState["answers"], McpError.McpError> => {
  const all = new Map(answers)
  const given = params?.["inputResponses"] ?? {}
  if (!isObject(given)) return refused("params.inputResponses: an object is expected")
  for (const [key, { asked, expires, method: name }] of pending) {
    if (expires !== undefined && now >= expires) all.set(key, { asked })
    else if (Object.hasOwn(given, key) && given[key] !== null) {
      const answer = given[key]
      const method = Method.inputRequest(name, revision)!
      const result = Codec.decode(method.result, revision, answer, `params.inputResponses[${JSON.stringify(key)}]`)
      if (Result.isFailure(result)) return refused(result.failure)
      all.set(key, { asked, answer: answer as JsonObject })
    }
  }
  return Effect.succeed(all)
}
