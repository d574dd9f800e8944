/**
 * Converts the opaque values of authorization to those of `@skein/auth`, whose types contain effects, and back. The entry exports
 * nothing of it.
 */
import type { Grant } from "@skein/auth/Grant"
import type { TokenVerifier as CoreVerifier } from "@skein/auth/TokenVerifier"
import type * as Http from "@skein/server/Http"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { layerOf, type Opaque } from "../base/definition.ts"
import type { Protection } from "../base/http.ts"

/** The verifier of `@skein/auth` in a verifier. */
export const coreVerifier = (verifier: Opaque<"TokenVerifier">): CoreVerifier => verifier as unknown as CoreVerifier

type AnyGrant = Opaque<"PersonGrant"> | Opaque<"ProgramGrant">

/** The grant of `@skein/auth` in a grant. */
export const coreGrant = (grant: AnyGrant): Grant => grant as unknown as Grant

/** Whether a grant asks a person. */
export const asksPerson = (grant: AnyGrant): boolean => coreGrant(grant).definition._tag === "AuthorizationCode"

/**
 * A protection of an effect that an endpoint runs when it starts, with its loggers. An error of the options is thrown now
 * already. `paths` belongs to the effect, because routers are set up before the endpoint starts.
 */
export const protectionOf = (make: Effect.Effect<Http.Protection>, store?: Opaque<"ReplayStore">): Protection => {
  const { paths = [] } = Effect.runSync(make)
  const provided = store === undefined ? Effect.suspend(() => make) : withStore(make, store)
  return Object.assign(provided, { paths }) as unknown as Protection
}

/** The store lives as long as the endpoint, whose scope is there when the endpoint makes its protection. */
const withStore = (
  make: Effect.Effect<Http.Protection>,
  store: Opaque<"ReplayStore">
): Effect.Effect<Http.Protection> =>
  Effect.gen(function*() {
    const scope = Option.getOrElse(yield* Effect.serviceOption(Scope.Scope), Scope.makeUnsafe)
    const context = yield* Layer.buildWithScope(layerOf(store) as Layer.Layer<never>, scope)
    return yield* Effect.provideContext(make, context)
  })
