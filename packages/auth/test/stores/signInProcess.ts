/** A process of a host that signs in with `OAuth` and shares its tokens with others in a store. */
import * as FileTokenStore from "@skein/auth/FileTokenStore"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as SqlTokenStore from "@skein/auth/SqlTokenStore"
import * as PgClient from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { person, request } from "../oauth/scriptedServers.ts"

const [kind, place, url] = process.argv.slice(2) as [string, string, string]

const lockTimeout = "5 seconds"
const Store = kind === "file"
  ? FileTokenStore.layer({ folder: place, lockTimeout })
  : SqlTokenStore.layer({ lockTimeout }).pipe(Layer.provide(PgClient.layer({ url: place, maxConnections: 3 })))

// The person takes longer than a process waits for a lock.
const { asked, layer } = person({ before: Effect.sleep("8 seconds") })

const program = Effect.gen(function*() {
  const oauth = yield* OAuth.make({
    grant: Grant.authorizationCode({ clientName: "Tea House" }),
    // A token that was just granted and is refused is refreshed all the same.
    signInInterval: "1 millis"
  })
  process.on("message", () => {
    Effect.runPromise(request(oauth, new URL(url))).then(
      (status) => process.send!({ status, asked: asked.length }),
      (error) => process.send!({ error: String(error) })
    )
  })
  process.send!("ready")
  return yield* Effect.never
})

process.on("disconnect", () => process.exit())
await Effect.runPromise(Effect.provide(program, [layer, Store]) as Effect.Effect<never>)
