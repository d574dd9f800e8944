/** The programs of `console.md`. */
import { expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Console from "@skein/console/Console"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { interruptAll, type Jobs, OnTheNetwork, WithJobs } from "../programs/console.ts"

const all = Array.from({ length: 450 }, (_, at) => ({ id: `${at}`, name: `job ${at}`, startedAt: 1_000 + at }))

const jobs: Jobs = {
  count: Effect.succeed(all.length),
  list: (after, limit) => {
    const from = after === undefined ? 0 : Number(after) + 1
    return Effect.succeed(all.slice(from, from + limit))
  },
  cancel: (id) => Effect.succeed(id === "3"),
  promote: (id) => Effect.succeed(id === "3" ? 1 : undefined)
}

it.live("lists the jobs of a source by pages, cancels one, and lets one start first", () =>
  Effect.scoped(Effect.gen(function*() {
    const { url } = Context.get(yield* Layer.build(WithJobs(jobs)), Console.Server)
    const get = (path: string) => Effect.promise(async () => (await fetch(new URL(path, url))).json() as Promise<any>)
    const { instance, rows } = yield* get("tree")
    const group = rows.find(({ kind }: { readonly kind: string }) => kind === "group")
    expect(group).toMatchObject({ id: "jobs:all", more: { total: 450, after: "199" } })
    expect(rows).toHaveLength(202)
    const second = yield* get("more?parent=jobs:all&after=199")
    expect([second.rows.length, second.rows[0].label, second.after]).toEqual([200, "job 200", "399"])
    const last = yield* get("more?parent=jobs:all&after=399")
    expect([last.rows.length, last.after]).toEqual([50, undefined])
    const post = (path: string, members: object) =>
      Effect.promise(async () => {
        const headers = { "content-type": "application/json" }
        const body = JSON.stringify({ instance, ...members })
        return (await fetch(new URL(path, url), { method: "POST", headers, body })).json()
      })
    expect(yield* post("interrupt", { id: "jobs:3" })).toEqual({ outcome: "Interrupted" })
    expect(yield* post("interrupt", { id: "jobs:4" })).toEqual({ outcome: "NotFound" })
    const [{ confirm, label, name }] = rows.find(({ id }: { readonly id: string }) => id === "jobs:3").actions
    expect([name, label, confirm]).toEqual(["promote", "Start first", "Jobs that have waited longer start later."])
    expect(yield* post("act", { id: "jobs:3", action: "promote" })).toEqual({
      outcome: "Done",
      message: "The job has place 1"
    })
    expect(yield* post("act", { id: "jobs:4", action: "promote" })).toEqual({
      outcome: "NotFound",
      message: "The job has started"
    })
    expect(yield* post("act", { id: "jobs:3", action: "stop" })).toEqual({ outcome: "NotFound" })
  })))

it.live("interrupts the requests of one principal", () =>
  Effect.scoped(Effect.gen(function*() {
    const wait = Tool.layer(Tool.make("wait"), () => Effect.never as Effect.Effect<string>)
    const context = yield* Layer.build(McpServer.layer({ name: "waiting", version: "1" }, wait))
    const { inspect, serve } = Context.get(context, McpServer.McpServer)
    const calling = Effect.forEach(["ada", "bob"], (id) =>
      Effect.gen(function*() {
        const client = yield* Client.make(InMemoryTransport.transport(serve, { principal: { id } }))
        return yield* Effect.forkScoped(Effect.flip(client.callTool("wait")), { startImmediately: true })
      }))
    const [ada, bob] = yield* calling
    const running = Effect.map(inspect, ({ sessions }) => sessions.flatMap(({ requests }) => requests).length)
    while (yield* Effect.map(running, (count) => count < 2)) yield* Effect.sleep(5)
    expect(yield* Effect.provide(interruptAll("ada"), context)).toBe(1)
    while (yield* Effect.map(running, (count) => count > 1)) yield* Effect.sleep(5)
    while (ada!.pollUnsafe() === undefined) yield* Effect.sleep(5)
    expect(bob!.pollUnsafe()).toBeUndefined()
  })))

it.live("is served on other addresses with protect, for the names of allowedHosts", () =>
  Effect.scoped(Effect.gen(function*() {
    const { port } = Context.get(yield* Layer.build(OnTheNetwork("a long secret", 0)), Console.Server)
    const { status } = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/`))
    // Refused by its name already, which is not among allowedHosts.
    expect(status).toBe(403)
  })))
