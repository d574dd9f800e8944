/**
 * A pool of the servers of others, all at once: over HTTP in every way that they serve, and over stdio.
 */
import * as ClientPool from "@skein/client/ClientPool"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { afterAll, beforeAll, expect, it } from "vitest"
import { eventually } from "../eventually.ts"
import * as Offer from "../fixtures/offer.ts"
import { ways } from "../hosts/all.ts"
import type { Host } from "../hosts/host.ts"
import { serverCommand } from "../matrix.ts"

const hosts = new Map<string, Host>()
beforeAll(async () => {
  for (const { offer, server, way } of ways) hosts.set(`${server}, ${way}`, await offer())
})
afterAll(async () => {
  for (const host of hosts.values()) await host.close()
})

const processes = ["sdk-v1", "sdk-v2", "effect-ai"] as const

it("each is opened in its own way, answers for itself, and is left behind in order", async () => {
  const servers: Record<string, ClientPool.Server> = {}
  for (const [name, { address: { url } }] of hosts) {
    servers[`${name}, by node`] = { transport: NodeHttp.transport({ url }) }
    servers[`${name}, by fetch`] = { transport: Http.transport({ url }) }
  }
  for (const name of processes) servers[`${name}, stdio`] = { transport: Stdio.transport(serverCommand(name)) }
  const names = Object.keys(servers)
  const program = Effect.gen(function*() {
    const pool = yield* ClientPool.make(servers)
    const [tools, resources, prompts] = yield* Effect.all([pool.tools, pool.resources, pool.prompts], {
      concurrency: "unbounded"
    })
    expect(tools.map(({ server }) => server)).toEqual(names)
    for (const { result } of tools) expect(Result.getOrThrow(result)).toHaveLength(9)
    for (const { result } of resources) expect(Result.getOrThrow(result)).toHaveLength(Offer.resourceUris.length)
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
  for (const { seen, sessions } of hosts.values()) {
    await eventually(() => expect(sessions?.() ?? 0).toBe(0))
    // Whatever had a session has ended it.
    const ids = (verb?: string) =>
      new Set(
        seen.flatMap(({ headers, verb: had }) =>
          headers["mcp-session-id"] !== undefined && (verb === undefined || verb === had)
            ? [headers["mcp-session-id"]]
            : []
        )
      )
    expect(ids("DELETE")).toEqual(ids())
  }
})
