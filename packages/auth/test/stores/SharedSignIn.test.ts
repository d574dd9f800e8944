/** Processes of one user share a store of tokens. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { start as startServers } from "../oauth/scriptedServers.ts"
import { temporary } from "./folder.ts"

const program = join(import.meta.dirname, "signInProcess.ts")

const start = (...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const child = fork(program, args, {
        execArgv: ["--conditions=@skein/source"],
        stdio: ["ignore", "ignore", "inherit", "ipc"]
      })
      await once(child, "message")
      return child
    }),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )

const requestIn = (child: ChildProcess) =>
  Effect.promise(async () => {
    const answer = once(child, "message")
    child.send("request")
    return (await answer)[0] as { readonly status?: number; readonly asked?: number; readonly error?: string }
  })

const askOnce = (args: readonly [kind: string, place: string]) =>
  Effect.gen(function*() {
    const servers = yield* startServers
    const children = yield* Effect.all(
      Array.from({ length: 5 }, () => start(...args, servers.url.href)),
      { concurrency: "unbounded" }
    )
    const all = Effect.all(children.map(requestIn), { concurrency: "unbounded" })
    const first = yield* all
    assert.deepEqual(first.map(({ error, status }) => error ?? status), [200, 200, 200, 200, 200])
    assert.strictEqual(first.reduce((sum, { asked = 0 }) => sum + asked, 0), 1)
    assert.strictEqual(servers.count("/as/register"), 1)
    for (let round = 1; round <= 5; round++) {
      servers.accepted.clear()
      const refused = yield* all
      assert.deepEqual(refused.map(({ error, status }) => error ?? status), [200, 200, 200, 200, 200])
      assert.strictEqual(servers.forms("/as/token").length, 1 + round)
    }
    assert.strictEqual(servers.reused, 0)
    const { length } = servers.requests.filter(({ path }) => path === "/as/authorize")
    assert.strictEqual(length, 1)
  })

describe("a host of several processes with one store", () => {
  it.live(
    "FileTokenStore · 5 processes ask their user once, and renew each token once",
    () =>
      Effect.gen(function*() {
        yield* askOnce(["file", yield* temporary])
      }),
    60_000
  )
})

describePostgres("a host of several machines with one database", (postgres) => {
  it.live(
    "SqlTokenStore · 5 processes ask their user once, and renew each token once",
    () =>
      Effect.gen(function*() {
        yield* askOnce(["sql", yield* Effect.promise(() => postgres().createDatabase())])
      }),
    60_000
  )
})
