/** `npm run fleet`: nodes of the tea house that share their sessions in PostgreSQL, while clients call tools. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Effect from "effect/Effect"
import { required, unavailable } from "../packages/sql/test/postgres.ts"
import * as kit from "./testKit.ts"

const fleet = (...args: ReadonlyArray<string>) => kit.start(kit.program("fleet/main.ts", ...args))

/** Starts a fleet, and returns the origin of its balancer. Its processes end with the scope. */
const up = Effect.gen(function*() {
  const main = yield* fleet("up", "--port", "0", "--clients", "10")
  yield* Effect.addFinalizer(() => {
    main.kill("SIGTERM")
    return Effect.promise(() => main.ended)
  })
  const url = yield* kit.urlOf(main)
  yield* Effect.promise(() => main.until(/Call a tool:.*\n/))
  return { main, origin: new URL(url).origin, port: new URL(url).port, url }
})

/** Runs a command to its end, and returns what it prints. */
const change = (name: string, port: string) =>
  Effect.scoped(Effect.gen(function*() {
    const command = yield* fleet(name, "--port", port)
    const code = yield* Effect.promise(() => command.ended)
    return { code, out: command.out().trim() }
  }))

const stateOf = (origin: string): Effect.Effect<kit.Json> =>
  Effect.promise(async () => (await fetch(`${origin}/fleet`)).json())

const report = (text: string) => {
  const [, calls, failed] = /(\d+) calls in \d+ s, (\d+) failed\./.exec(text)!
  return { calls: Number(calls), failed: Number(failed) }
}

describe("npm run fleet", () => {
  it.live("exits with 2 for a wrong command line, and with 1 without a fleet", () =>
    Effect.gen(function*() {
      const wrong = yield* fleet("stop")
      expect(yield* Effect.promise(() => wrong.ended)).toBe(2)
      expect(wrong.err()).toMatch(/^the command is up, kill, roll or join, not stop\nusage: npm run fleet/)
      const port = String(yield* kit.freePort)
      const alone = yield* fleet("roll", "--port", port)
      expect(yield* Effect.promise(() => alone.ended)).toBe(1)
      expect(alone.err()).toBe(
        `Nothing listens on port ${port}. Start the fleet in another shell: npm run fleet -- up\n`
      )
    }))

  it.skipIf(unavailable === undefined || required)(`not checked: ${unavailable}`, () => {})

  if (unavailable === undefined || required) {
    it.live("replaces, kills and adds nodes: no call fails when they are replaced", () =>
      Effect.gen(function*() {
        const { main, origin, port, url } = yield* up
        // A session that lives through all of it.
        const client = yield* Client.make(NodeHttp.transport({ url }), { revisions: ["2025-11-25"] })
        yield* client.callTool("greet", { name: "Ada" })

        const rolled = yield* change("roll", port)
        expect(rolled.out).toMatch(/^Replaced node 1 by node 4, node 2 by node 5, node 3 by node 6\. /)
        const { calls, failed } = report(rolled.out)
        expect([rolled.code, failed, calls > 0]).toEqual([0, 0, true])

        expect((yield* change("join", port)).out).toMatch(/^Started node 7\. \d+ calls in \d+ s, 0 failed\.$/)
        const killed = yield* change("kill", port)
        expect(killed.out).toMatch(/^Killed node 4\. /)
        // The calls in flight at that node are lost, and no others.
        expect(report(killed.out).failed).toBeLessThanOrEqual(10)

        expect(yield* client.callTool("greet", { name: "Ada" })).toMatchObject({
          content: [{ text: "Welcome to the tea house, Ada!" }]
        })
        const { nodes } = yield* stateOf(origin)
        expect(nodes.map(({ name }: kit.Json) => name)).toEqual(["node 5", "node 6", "node 7"])
        for (const { answers } of nodes) expect(answers).toBeGreaterThan(0)
        expect(main.err()).toBe("")
      }))

    it.live("refuses changes that a page of another origin asks for", () =>
      Effect.gen(function*() {
        const { origin } = yield* up
        const answer = yield* Effect.promise(() =>
          fetch(`${origin}/fleet/kill`, { method: "POST", headers: { origin: "https://evil.example" } })
        )
        expect(answer.status).toBe(403)
        expect((yield* stateOf(origin)).nodes).toHaveLength(3)
      }))
  }
})
