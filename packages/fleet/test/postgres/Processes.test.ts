/** Nodes as processes, which are killed and stopped. */
import { expect, it } from "@effect/vitest"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as Effect from "effect/Effect"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { posting, send } from "../../../server/test/http/kit.ts"
import { call, enter } from "../../../server/test/http/session/kit.ts"
import { at } from "../../../server/test/http/fleet/kit.ts"
import { start, until } from "../kit.ts"
import { startNode } from "./nodeProcess.ts"

const run = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => startNode({ url }, (text) => void process.stderr.write(text))),
      ({ kill }) => Effect.sync(() => kill("SIGKILL"))
    ),
    ({ ended, kill, ...node }) => ({
      ...node,
      exit: Effect.promise(() => ended),
      kill: (signal: NodeJS.Signals) => Effect.sync(() => kill(signal))
    })
  )

describePostgres("processes with one PostgreSQL", (postgres) => {
  it.live("go on with the sessions of a node that was killed, and do not wait for it", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres().createDatabase())
      const observer = yield* start(PostgresFleet.layer({ url, leaseTimeout: "2 seconds" }))
      const [killed, ...others] = yield* Effect.all([run(url), run(url), run(url)])
      const client = yield* enter(killed as never, "2025-11-25")
      const clients = [killed, ...others].map((node) => at(client, node as never))
      const pidOf = (at: typeof client) =>
        Effect.map(at.post(call(1, "pid")), ({ json }) => Number(json.result.content[0].text))
      for (const [index, node] of [killed!, ...others].entries()) expect(yield* pidOf(clients[index]!)).toBe(node.pid)
      yield* until("the observer knows the node", () => observer.fleet.isServing(killed!.node))
      yield* killed!.kill("SIGKILL")
      yield* killed!.exit
      for (const [index, { pid }] of others.entries()) expect(yield* pidOf(clients[index + 1]!)).toBe(pid)
      // The lease of the killed node may be valid: it is waited for only briefly.
      yield* observer.fleet.change(client.id, { logLevel: "error" })
      yield* until("the node is gone", () => !observer.fleet.isServing(killed!.node))
      expect((yield* clients[1]!.delete()).status).toBe(204)
      expect((yield* clients[2]!.post(call(2, "pid"))).status).toBe(404)
      const opened = yield* send(others[0] as never, {
        headers: { ...posting, "mcp-session-id": "made-up" },
        body: call(3, "pid")
      })
      expect(opened.status).toBe(404)
    }).pipe(Effect.scoped))

  it.live("take a stopped node back, and end with SIGTERM without a lease", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres().createDatabase())
      const observer = yield* start(PostgresFleet.layer({ url, leaseTimeout: "2 seconds" }))
      const node = yield* run(url)
      const client = yield* enter(node as never, "2025-11-25")
      yield* observer.fleet.find(client.id, undefined)
      yield* node.kill("SIGSTOP")
      yield* until("the node is taken for gone", () => !observer.fleet.isServing(node.node))
      yield* observer.fleet.change(client.id, { logLevel: "error" })
      yield* node.kill("SIGCONT")
      yield* until("the node is back", () => observer.fleet.isServing(node.node))
      expect((yield* client.post(call(1, "pid"))).status).toBe(200)
      yield* node.kill("SIGTERM")
      yield* node.exit
      yield* until("the node has left", () => !observer.fleet.isServing(node.node))
    }).pipe(Effect.scoped))
})
