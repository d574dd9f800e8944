/**
 * Intercepts statements on their way to PostgreSQL.
 */
import * as Effect from "effect/Effect"
import { Client } from "pg"

type Query = (this: Client, config: { readonly text: string }, ...rest: ReadonlyArray<unknown>) => unknown

/** Intercepts the first statement that matches, while the scope is open. */
export const first = (like: RegExp, sends: (client: Client, send: () => unknown) => unknown) => {
  const prototype = Client.prototype as unknown as { query: Query }
  const { query } = prototype
  let over = false
  return Effect.acquireRelease(
    Effect.sync(() => {
      prototype.query = function(config, ...rest) {
        const send = () => query.call(this, config, ...rest)
        if (over || !like.test(config.text)) return send()
        over = true
        return sends(this, send)
      }
    }),
    () => Effect.sync(() => void (prototype.query = query))
  )
}
