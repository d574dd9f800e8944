/**
 * The tokens of the upstream behind a `Proxy`, for handlers and tasks. The token belongs to the caller and is renewed when
 * it is about to expire. A client never sees it, and its own token never reaches the upstream.
 *
 * Ask for the token where you use it, each time: a token that you keep expires. Do not return it from a step of a task,
 * which would store it. A task runs for days, and `current` gives each of its runs a token that is valid then. This
 * module needs the package `@skein/server`.
 *
 * @example
 * const issues = Tool.layer(Tool.make("issues"), () =>
 *   Effect.gen(function*() {
 *     const token = yield* UpstreamToken.current
 *     return yield* listIssues(Redacted.value(token))
 *   }))
 */
import type { McpError } from "@skein/protocol/McpError"
import * as PrintableError from "@skein/protocol/PrintableError"
import { McpRequest } from "@skein/server/McpRequest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { signInRequired } from "../server/grants.ts"

/**
 * The sign-in has ended: the user signed out, the upstream has ended it, or `refreshTokenLifetime` is over. The client is
 * answered with 401, and its user signs in again.
 */
export class SignInRequired extends PrintableError.tagged("SignInRequired")<{
  readonly cause?: unknown
}> {}

/** The upstream or the store did not answer. Everything is kept, and a later attempt can succeed. */
export class UpstreamUnavailable extends PrintableError.tagged("UpstreamUnavailable")<{
  readonly cause?: unknown
}> {}

/** Why there is no token. */
export type Reason = SignInRequired | UpstreamUnavailable

/**
 * There is no token. Its `reason` is a tagged error, and the message is that of the reason. It contains no token.
 *
 * @example
 * UpstreamToken.current.pipe(
 *   Effect.catchReason("UpstreamTokenError", "SignInRequired", () => Effect.fail(new Stopped({ message: "Sign in again" })))
 * )
 */
export class UpstreamTokenError extends PrintableError.withReason("UpstreamTokenError")<{
  readonly reason: Reason
}> {
  override readonly cause: unknown = this.reason
}

/** The upstream tokens of a proxy. `Proxy.make` provides it. */
export class UpstreamToken extends Context.Service<UpstreamToken, {
  /** The token of one sign-in. Its id is the claim `grant` of a principal of the proxy. */
  readonly ofGrant: (grant: string) => Effect.Effect<Redacted.Redacted, UpstreamTokenError>
  /** The token of the latest sign-in of a principal that has not ended. */
  readonly ofPrincipal: (id: string) => Effect.Effect<Redacted.Redacted, UpstreamTokenError>
  /** Ends one sign-in. The client's next request is answered with 401. */
  readonly endGrant: (grant: string) => Effect.Effect<void, UpstreamTokenError>
  /** Ends the sign-in of a principal that has this token, unless the token was renewed meanwhile. */
  readonly refused: (id: string, token: Redacted.Redacted) => Effect.Effect<void, UpstreamTokenError>
}>()("@skein/auth/UpstreamToken") {}

const noSignIn = Effect.suspend(() =>
  Effect.fail(
    new UpstreamTokenError({ reason: new SignInRequired({ message: "the caller has not signed in at the proxy" }) })
  )
)

/**
 * The token of one sign-in: that of the claim `grant` of a principal.
 *
 * @example
 * const token = yield* UpstreamToken.ofGrant(grant)
 */
export const ofGrant = (grant: string): Effect.Effect<Redacted.Redacted, UpstreamTokenError, UpstreamToken> =>
  Effect.flatMap(UpstreamToken, ({ ofGrant }) => ofGrant(grant))

/**
 * The token of the latest sign-in of a principal that has not ended, by the principal's id.
 *
 * @example
 * const token = yield* UpstreamToken.ofPrincipal(owner)
 */
export const ofPrincipal = (id: string): Effect.Effect<Redacted.Redacted, UpstreamTokenError, UpstreamToken> =>
  Effect.flatMap(UpstreamToken, ({ ofPrincipal }) => ofPrincipal(id))

/**
 * The sign-in of the caller, to pass it to `ofGrant` later. A task does not have it: prepare it with
 * `Task.layerPrepared` if the task must end with this sign-in.
 *
 * @example
 * const grant = yield* UpstreamToken.currentGrant
 */
export const currentGrant: Effect.Effect<string, UpstreamTokenError, McpRequest> = /* @__PURE__ */ Effect.flatMap(
  McpRequest,
  ({ caller }) => {
    const grant = caller.principal?.["grant"]
    return typeof grant === "string" ? Effect.succeed(grant) : noSignIn
  }
)

/**
 * The upstream token of the caller. In a handler it is the token of the sign-in that the request belongs to. In a task,
 * which has the id of its principal only, it is the token of the principal's latest sign-in that has not ended.
 *
 * @example
 * const token = yield* UpstreamToken.current
 */
export const current: Effect.Effect<Redacted.Redacted, UpstreamTokenError, McpRequest | UpstreamToken> =
  /* @__PURE__ */ Effect.flatMap(McpRequest, ({ caller: { principal } }) => {
    const grant = principal?.["grant"]
    if (typeof grant === "string") return ofGrant(grant)
    return principal === undefined ? noSignIn : ofPrincipal(principal.id)
  })

/**
 * Reports that the upstream refused the token of the caller (401). Its sign-in ends, and the user signs in again. Nothing
 * happens if the token was renewed meanwhile.
 *
 * @example
 * const token = yield* UpstreamToken.current
 * const reply = yield* listIssues(Redacted.value(token))
 * if (reply.status === 401) yield* UpstreamToken.refused(token)
 */
export const refused = (
  token: Redacted.Redacted
): Effect.Effect<void, UpstreamTokenError, McpRequest | UpstreamToken> =>
  Effect.flatMap(McpRequest, ({ caller: { principal } }) =>
    principal === undefined
      ? Effect.void
      : Effect.flatMap(UpstreamToken, ({ refused }) => refused(principal.id, token)))

/**
 * Answers a call whose sign-in has ended with 401, in place of the error: the client signs its user in and calls again.
 * Use it around a handler, and not in a task, whose caller is gone. Before the handler reports progress: after a message
 * about the request was sent, there is no HTTP status.
 *
 * @example
 * const issues = Tool.layer(Tool.make("issues"), () => UpstreamToken.orSignIn(
 *   Effect.flatMap(UpstreamToken.current, (token) => listIssues(Redacted.value(token)))
 * ))
 */
export const orSignIn = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | McpError, R | McpRequest> =>
  Effect.catch(
    effect,
    (error): Effect.Effect<never, E | McpError, McpRequest> =>
      error instanceof UpstreamTokenError && error.reason._tag === "SignInRequired"
        ? Effect.flatMap(McpRequest, ({ caller }) => Effect.fail(signInRequired(caller.principal, error.message)))
        : Effect.fail(error)
  )
