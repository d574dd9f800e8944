/**
 * The scopes that the tools, resources, resource templates and prompts of a server need.
 *
 * A request with a token that lacks a scope is refused with 403 and a challenge that names all scopes of the operation,
 * so that the client can get a token that has them (a step-up). If a message about the request was sent already, in a
 * batch and over HTTP+SSE, the client gets a JSON-RPC error with the same scopes in its `data`.
 *
 * The scopes of a caller are `principal.scopes`, which `Protect` sets. A principal of your own may have them too. This
 * module needs the package `@skein/server`.
 *
 * @example
 * const Server = McpServer.layer(
 *   { name: "tea", version: "1.0.0" },
 *   Tool.layer(menu, showMenu),
 *   Scopes.required(["tea:write"], Tool.layer(brew, doBrew)),
 *   Scopes.hiddenWithout(["tea:admin"], Tool.layer(reset, doReset))
 * )
 */
import type * as McpError from "@skein/protocol/McpError"
import * as Catalog from "@skein/server/Catalog"
import { McpRequest } from "@skein/server/McpRequest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { checkScopes, hasScopes, insufficientScope } from "./grants.ts"

/** The scopes that the surrounding `required` have listed. */
const Required = /* @__PURE__ */ Context.Reference(
  "@skein/auth/Scopes/Required",
  { defaultValue: (): ReadonlyArray<string> => [] }
)

const union = (some: ReadonlyArray<string>, others: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set([...some, ...others])
]

type Definitions = ReadonlyArray<Layer.Layer<never, unknown, unknown>>
type Scoped<L extends Definitions> = Layer.Layer<
  never,
  Layer.Error<L[number]>,
  Layer.Services<L[number]> | Catalog.Catalog
>

/**
 * Definitions whose use needs scopes. They are in the lists of all callers. Without the scopes a call, a read, a
 * subscription or a completion is refused with 403, before its arguments are decoded; `subscriptions/listen` leaves the
 * resources out. Nested lists add up, and are in one challenge. Throws if a scope has a character that is not allowed.
 *
 * @example
 * const tools = Scopes.required(["tea:write"], Tool.layer(brew, doBrew), Tool.layer(pour, doPour))
 */
export const required = <const L extends Definitions>(
  scopes: ReadonlyArray<string>,
  ...definitions: L
): Scoped<L> => {
  checkScopes("Scopes: the list", scopes)
  return Layer.unwrap(Effect.map(Required, (outer) => {
    const all = union(outer, scopes)
    return Catalog.guarded(
      ({ principal }) => hasScopes(principal, all) ? undefined : insufficientScope(principal, all),
      ...definitions.map((definition) => Layer.provide(definition, Layer.succeed(Required, all)))
    )
  })) as Scoped<L>
}

/**
 * Definitions that only callers with all of these scopes see. For others they do not exist: no challenge tells them which
 * scopes would show them. Throws if a scope has a character that is not allowed.
 *
 * @example
 * const admin = Scopes.hiddenWithout(["tea:admin"], Tool.layer(reset, doReset))
 */
export const hiddenWithout = <const L extends Definitions>(
  scopes: ReadonlyArray<string>,
  ...definitions: L
): Layer.Layer<never, Layer.Error<L[number]>, Layer.Services<L[number]> | Catalog.Catalog> => {
  checkScopes("Scopes: the list", scopes)
  return Catalog.visibleTo(({ principal }) => hasScopes(principal, scopes), ...definitions)
}

/**
 * Needs scopes inside of a handler, where they depend on the arguments. Fails with the challenge if the caller lacks one;
 * it names the scopes of the surrounding `required` as well. Call it once with all scopes, and before the handler reports
 * progress or logs: after a message was sent there is no status, and the client gets the JSON-RPC error alone. In a task
 * the caller has no scopes: call it before the task is created, in `prepare`.
 *
 * @example
 * const handler = ({ shop }) => Effect.andThen(Scopes.require(`tea:shop:${shop}`), brewAt(shop))
 */
export const require = (
  ...scopes: ReadonlyArray<string>
): Effect.Effect<void, McpError.McpError, McpRequest> =>
  Effect.flatMap(McpRequest, ({ caller: { principal } }) =>
    hasScopes(principal, scopes)
      ? Effect.void
      : Effect.flatMap(Required, (outer) =>
        Effect.suspend(() =>
          Effect.fail(insufficientScope(principal, union(outer, checkScopes("Scopes: the list", scopes))))
        )))

/**
 * Whether the caller of the current request has all of these scopes. It refuses nothing: use `require` for that.
 *
 * @example
 * const handler = () => Effect.map(Scopes.has("tea:admin"), (isAdmin) => isAdmin ? everything : menu)
 */
export const has = (...scopes: ReadonlyArray<string>): Effect.Effect<boolean, never, McpRequest> =>
  Effect.map(McpRequest, ({ caller: { principal } }) => hasScopes(principal, scopes))

/** Adds the scopes that a list of scopes implies. */
export interface Hierarchy {
  /** Returns the scopes with all that they imply, each once. */
  readonly expand: (scopes: ReadonlyArray<string>) => ReadonlyArray<string>
}

/**
 * A hierarchy of scopes: a token with a scope has the scopes that it implies as well, and those that they imply. "Servers
 * MUST account for scope hierarchies, where a broader scope implies narrower ones" (2026-07-28, authorization).
 *
 * @example
 * const hierarchy = Scopes.implies({ "tea:admin": ["tea:write"], "tea:write": ["tea:read"] })
 * const protection = Protect.make({ resource, verify, scopes: ["tea:read"], hierarchy })
 */
export const implies = (narrower: { readonly [scope: string]: ReadonlyArray<string> }): Hierarchy => {
  const direct = new Map(
    Object.entries(narrower).map(([scope, implied]) => [scope, checkScopes("Scopes: the list", implied)])
  )
  return {
    expand: (scopes) => {
      const all = new Set(scopes)
      // A set also visits the members that are added while it is visited.
      for (const scope of all) for (const implied of direct.get(scope) ?? []) all.add(implied)
      return all.size === scopes.length ? scopes : [...all]
    }
  }
}
