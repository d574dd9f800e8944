/**
 * The scopes that the tools, resources, resource templates and prompts of a server need.
 *
 * A request with a token that lacks a scope is refused with 403 and a challenge that names all scopes of the operation, so that
 * the client can get a token that has them. The scopes of a caller are `principal.scopes`, which `protect` sets. A principal of
 * your own may have them too.
 */
import * as Core from "@skein/auth/Scopes"
import type { HandlerContext as CoreContext } from "@skein/server/HandlerContext"
import { define, type Definition, layerOf } from "../base/definition.ts"
import type { Principal } from "../base/http.ts"

/**
 * Definitions whose use needs scopes. They are in the lists of all callers. Without the scopes a call, a read, a subscription or
 * a completion is refused with 403, before its arguments are read. Nested lists add up. Throws if a scope has a character that
 * is not allowed.
 *
 * @example
 * server.use(Scopes.required(["tea:write"], tool("brew", {}, brew), tool("pour", {}, pour)))
 */
export const required = (scopes: ReadonlyArray<string>, ...definitions: ReadonlyArray<Definition>): Definition =>
  define(Core.required(scopes, ...definitions.map(layerOf)))

/**
 * Definitions that only callers with all of these scopes see. For others they do not exist. Throws if a scope has a character
 * that is not allowed.
 *
 * @example
 * server.use(Scopes.hiddenWithout(["tea:admin"], tool("reset", {}, reset)))
 */
export const hiddenWithout = (scopes: ReadonlyArray<string>, ...definitions: ReadonlyArray<Definition>): Definition =>
  define(Core.hiddenWithout(scopes, ...definitions.map(layerOf)))

/** The context of a handler. */
interface Context {
  readonly principal: Principal | undefined
}

/**
 * Needs scopes inside of a handler, where they depend on the arguments. Rejects with the challenge if the caller lacks one; it
 * names the scopes of the surrounding `required` as well. Call it once with all scopes, and before the handler reports progress
 * or logs: after a message was sent, the client gets a JSON-RPC error without a status. In a task the caller has no scopes.
 *
 * @example
 * server.tool("brew", { input: z.object({ shop: z.string() }) }, async ({ shop }, context) => {
 *   await Scopes.require(context, `tea:shop:${shop}`)
 *   return brewAt(shop)
 * })
 */
export const require = (context: Context, ...scopes: ReadonlyArray<string>): Promise<void> =>
  (context as unknown as CoreContext).run(Core.require(...scopes))

/**
 * Whether the caller of the current request has all of these scopes. It refuses nothing: use `require` for that.
 *
 * @example
 * server.tool("menu", {}, (_, context) => Scopes.has(context, "tea:admin") ? everything : menu)
 */
export const has = ({ principal }: Context, ...scopes: ReadonlyArray<string>): boolean => {
  const granted = principal?.["scopes"]
  return scopes.every((scope) => Array.isArray(granted) && granted.includes(scope))
}

/** Adds the scopes that a list of scopes implies. */
export interface Hierarchy {
  /** Returns the scopes with all that they imply, each once. */
  readonly expand: (scopes: ReadonlyArray<string>) => ReadonlyArray<string>
}

/**
 * A hierarchy of scopes: a token with a scope has the scopes that it implies as well, and those that they imply.
 *
 * @example
 * const hierarchy = Scopes.implies({ "tea:admin": ["tea:write"], "tea:write": ["tea:read"] })
 */
export const implies: (narrower: { readonly [scope: string]: ReadonlyArray<string> }) => Hierarchy = Core.implies
