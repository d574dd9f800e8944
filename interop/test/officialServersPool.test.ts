/**
 * A `ClientPool` with all official servers at once: over HTTP in all their configurations, and over stdio.
 */
import * as ClientPool from "@skein/client/ClientPool"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { afterAll, beforeAll, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import * as Features from "../fixtures/features.ts"
import { configurations } from "../servers/configurations.ts"
import type { HttpServer } from "../servers/httpServer.ts"
import { serverCommand } from "../matrix.ts"

const httpServers = new Map<string, HttpServer>()
beforeAll(async () => {
  for (const { features, name, server } of configurations) httpServers.set(`${server}, ${name}`, await features())
})
afterAll(async () => {
  for (const server of httpServers.values()) await server.close()
})

const stdioServers = ["sdk-v1", "sdk-v2", "effect-ai"] as const

it("opens each server, keeps their results apart, and ends each session", async () => {
  const servers: Record<string, ClientPool.Server> = {}
  for (const [name, { address: { url } }] of httpServers) {
    servers[`${name}, node`] = { transport: NodeHttp.transport({ url }) }
    servers[`${name}, fetch`] = { transport: Http.transport({ url }) }
  }
  for (const name of stdioServers) {
    servers[`${name}, stdio`] = { transport: Stdio.transport(serverCommand(name, "Features")) }
  }
  const names = Object.keys(servers)
  const program = Effect.gen(function*() {
    const pool = yield* ClientPool.make(servers)
    const [tools, resources, prompts] = yield* Effect.all([pool.tools, pool.resources, pool.prompts], {
      concurrency: "unbounded"
    })
    expect(tools.map(({ server }) => server)).toEqual(names)
    for (const { result } of tools) expect(Result.getOrThrow(result)).toHaveLength(9)
    for (const { result } of resources) expect(Result.getOrThrow(result)).toHaveLength(Features.resourceUris.length)
    for (const { result } of prompts) expect(Result.getOrThrow(result)).toMatchObject([{ name: "brief" }])
    expect(pool.entries.map(({ state }) => state._tag)).toEqual(names.map(() => "Open"))

    const greetings = yield* Effect.forEach(names, (name) =>
      Effect.gen(function*() {
        const client = yield* pool.client(name)
        const calls = Array.from({ length: 20 }, (_, n) => client.callTool("greet", { name: `${name} ${n}` }))
        const outcomes = yield* Effect.all(calls, { concurrency: "unbounded" })
        expect(client.server?.name).toBe(name.split(",")[0])
        return outcomes.map(({ content: [block] }) => block?.type === "text" ? block.text : undefined)
      }), { concurrency: "unbounded" })
    expect(greetings).toEqual(names.map((name) => Array.from({ length: 20 }, (_, n) => `Hello, ${name} ${n}!`)))
  })
  await Effect.runPromise(Effect.scoped(program))
  for (const { requests, sessions } of httpServers.values()) {
    await eventually(() => expect(sessions?.() ?? 0).toBe(0))
    // Each session was ended with DELETE.
    const ids = (verb?: string) =>
      new Set(
        requests.flatMap(({ headers, verb: had }) =>
          headers["mcp-session-id"] !== undefined && (verb === undefined || verb === had)
            ? [headers["mcp-session-id"]]
            : []
        )
      )
    expect(ids("DELETE")).toEqual(ids())
  }
})
