/** Records of an engine in a `ProxyStore`, as they are: without encryption. For the development server. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ProxyStore } from "./store.ts"
import type { Records } from "./adapter.ts"

/** Records in a store, in plain text. `revokeAll` removes every grant, and the tokens that belong to it. */
export const plainRecords = (
  store: ProxyStore["Service"]
): Records & { readonly revokeAll: Effect.Effect<void> } => {
  const groups = new Set<string>()
  const run = Effect.runPromise
  return {
    get: async (key) => {
      const entry = Option.getOrUndefined(await run(store.get(key)))
      return entry === undefined ? undefined : { value: JSON.parse(entry.value), usedAt: entry.usedAt }
    },
    set: (key, value, options) => {
      if (options?.group !== undefined) groups.add(options.group)
      return run(store.set(key, JSON.stringify(value), options))
    },
    use: (key) => run(store.use(key, Date.now())),
    remove: (key) => run(store.remove(key)),
    removeGroup: (group) => {
      groups.delete(group)
      return run(store.removeGroup(group))
    },
    revokeAll: Effect.suspend(() => {
      const all = [...groups]
      groups.clear()
      return Effect.orDie(
        Effect.forEach(all, (group) => Effect.andThen(store.removeGroup(group), store.remove(`Grant ${group}`)), {
          discard: true
        })
      )
    })
  }
}
