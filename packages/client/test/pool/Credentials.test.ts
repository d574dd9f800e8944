/** Credentials of the servers in a pool. */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as ClientPool from "../../src/ClientPool.ts"
import * as Credentials from "../../src/Credentials.ts"
import * as Http from "../../src/Http.ts"
import type { Exchange, Json } from "../http/support/connection.ts"

const tokens = (hits: ReadonlyArray<Exchange>) => new Set(hits.map(({ headers }) => headers.authorization))

describe("the servers of a pool", () => {
  it.live("use the credentials of their own transports, and never a service that is provided around the pool", () =>
    Effect.gen(function*() {
      const one = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respond(404)))
      const other = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respond(404)))
      const later = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respond(404)))
      const credentials = Credentials.bearer(Redacted.make("for one"))
      const pool = yield* Effect.provideService(
        ClientPool.make({
          one: { transport: Http.transport({ url: one.url, credentials }), options: { revisions: ["2025-11-25"] } },
          other: { transport: Http.transport({ url: other.url }), options: { revisions: ["2025-11-25"] } }
        }),
        Credentials.Credentials,
        Credentials.bearer(Redacted.make("for everybody"))
      )
      const add = pool.add("later", {
        transport: Http.transport({ url: later.url }),
        options: { revisions: ["2025-11-25"] }
      })
      yield* Effect.provideService(add, Credentials.Credentials, Credentials.bearer(Redacted.make("for everybody")))
      for (const name of ["one", "other", "later"]) yield* pool.client(name)
      yield* pool.restart("other")
      yield* pool.client("other")
      assert.deepStrictEqual(tokens(one.exchanges), new Set(["Bearer for one"]))
      assert.deepStrictEqual(tokens(other.exchanges), new Set([undefined]))
      assert.deepStrictEqual(tokens(later.exchanges), new Set([undefined]))
    }).pipe(Effect.scoped))
})
