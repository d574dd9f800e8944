/** To whom the state that a server stores about a request belongs. */
import type { RequestContext, SessionPeer } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { type CatalogInternals, internals } from "../catalog/catalogState.ts"
import { sessionOf } from "../base/session.ts"

const names = new WeakMap<object, string>()
let count = 0

/** A name of an object for as long as it exists. No other object of the process has it. */
const nameOf = (value: object): string => {
  const name = names.get(value) ?? `${++count}`
  names.set(value, name)
  return name
}

/** The names of the values of sessions that this process has defined, for `skein inspect --fleet`. */
export const perSessionNames = new Set<string>()

// More names are not needed in a report.
const maxNames = 100

/** Records the name of a value of sessions. */
export const reportPerSession = (name: string): void => {
  if (perSessionNames.size < maxNames) perSessionNames.add(name)
}

/** An owner, and the scope that closes when it is gone. Principals have none. */
export interface Owner {
  readonly key: string
  readonly scope: Scope.Scope | undefined
}

/** The owner of the state of a principal. */
export const ofPrincipal = (id: string): Owner => ({ key: `principal ${id}`, scope: undefined })

/** The session of a request, while it is open. `undefined` in the stateless revision. */
export const ofSession = (
  catalog: { readonly [internals]: CatalogInternals },
  request: RequestContext
): Owner | undefined => {
  const scope = catalog[internals].changes.listener?.session(request.caller)
  return scope === undefined ? undefined : { key: `session ${nameOf(sessionOf(request.caller)!)}`, scope }
}

/** The session of a request that several processes serve. Its state outlives this process, and expires by its lifetime. */
export const ofSharedSession = (
  catalog: { readonly [internals]: CatalogInternals },
  request: RequestContext
): Owner | undefined => {
  const id = catalog[internals].changes.listener?.sharedSession(request.caller)
  return id === undefined ? undefined : { key: `session ${id}`, scope: undefined }
}

/** The connection of a stateless request, on a transport where a connection has one client: stdio. */
export const ofConnection = ({ peer }: RequestContext): Owner | undefined =>
  peer === undefined ? undefined : { key: `connection ${nameOf(peer)}`, scope: (peer satisfies SessionPeer).scope }

const watched = new WeakMap<object, WeakSet<Scope.Scope>>()

/** Calls a function when an owner is gone, once for each owner and user. */
export const whenGone = (user: object, { scope }: Owner, release: () => void): Effect.Effect<void> => {
  if (scope === undefined) return Effect.void
  const scopes = watched.get(user) ?? new WeakSet()
  watched.set(user, scopes)
  if (scopes.has(scope)) return Effect.void
  scopes.add(scope)
  return Scope.addFinalizer(scope, Effect.sync(release))
}
