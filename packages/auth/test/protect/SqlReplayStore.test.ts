/** The store of DPoP proofs in a database that several instances share. */
import * as ReplayStore from "@skein/auth/ReplayStore"
import * as SqlReplayStore from "@skein/auth/SqlReplayStore"
import { describe, expect, it } from "@effect/vitest"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Dpop from "../../src/server/dpop.ts"
import { resource } from "./authorizationServer.ts"
import { makeDpopClient } from "./dpopClient.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-replays-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

describe("SqlReplayStore", () => {
  it.effect("RFC 9449, 11.1 · accepts a proof once among instances with one database", () =>
    Effect.gen(function*() {
      const filename = join(yield* folder, "replays.db")
      const client = yield* makeDpopClient()
      const instance = Effect.gen(function*() {
        const store = yield* Layer.build(SqlReplayStore.layer().pipe(Layer.provide(SqliteClient.layer({ filename }))))
        return yield* Effect.provide(Dpop.make(resource), store)
      })
      const [one, two] = [yield* instance, yield* instance]
      const proof = yield* client.prove("token")
      const sent = { proof, method: "POST", token: "token", jkt: client.jkt, owner: "ada" }
      const outcomes = yield* Effect.forEach([one, two, one, two], (verifier) => Effect.exit(verifier.verify(sent)), {
        concurrency: "unbounded"
      })
      expect(outcomes.filter(({ _tag }) => _tag === "Success")).toHaveLength(1)
    }))

  it.effect("deletes the rows of proofs that cannot be used again", () =>
    Effect.gen(function*() {
      const store = yield* SqlReplayStore.make()
      const sql = yield* SqlClient.SqlClient
      for (let at = 0; at < 5; at++) {
        expect(yield* store.add({ id: `${at}`, owner: "ada", now: at * 10_000, expiresAt: at * 10_000 + 15_000 })).toBe(
          true
        )
      }
      expect(yield* sql`SELECT id FROM skein_dpop_proofs ORDER BY id`).toEqual([{ id: "3" }, { id: "4" }])
    }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" }))))

  it.effect("writes at most maxProofs rows, and a tenth of them of one sender", () =>
    Effect.gen(function*() {
      const store = yield* SqlReplayStore.make({ maxProofs: 3 })
      const sql = yield* SqlClient.SqlClient
      const add = (id: string, owner: string, now = 0) => store.add({ id, owner, now, expiresAt: now + 10_000 })
      expect([yield* add("1", "ada"), yield* add("1", "ada")]).toEqual([true, false])
      expect((yield* Effect.flip(add("2", "ada"))).message).toContain("a tenth of maxProofs (1)")
      expect([yield* add("2", "grace"), yield* add("3", "mary")]).toEqual([true, true])
      expect((yield* Effect.flip(add("4", "joan"))).message).toContain("maxProofs (3)")
      expect(yield* sql`SELECT id FROM skein_dpop_proofs ORDER BY id`).toEqual([{ id: "1" }, { id: "2" }, { id: "3" }])
      expect(yield* add("5", "ada", 10_000)).toBe(true)
      expect(yield* sql`SELECT id FROM skein_dpop_proofs`).toEqual([{ id: "5" }])
    }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" }))))

  it.effect("fails with ReplayStoreError when the database does", () =>
    Effect.gen(function*() {
      const store = yield* SqlReplayStore.make()
      const sql = yield* SqlClient.SqlClient
      yield* sql`DROP TABLE skein_dpop_proofs`
      const error = yield* Effect.flip(store.add({ id: "1", owner: "ada", now: 0, expiresAt: 1 }))
      expect(error).toBeInstanceOf(ReplayStore.ReplayStoreError)
    }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" }))))
})
