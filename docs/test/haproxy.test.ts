/** The configuration of HAProxy in its recipe, in front of two instances of a server. Needs HAProxy (Debian: haproxy). */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../scripts/freePort.ts"
import { testedRevisions } from "./kit.ts"
import { modern } from "./process.ts"
import {
  blocks,
  connect,
  findProgram,
  type Replica,
  replicas,
  shortened,
  startProxy,
  textOf,
  underLoad,
  until
} from "./proxyKit.ts"

const page = "recipes/haproxy.md"
const program = findProgram("haproxy")
const [configuration = ""] = blocks(page, "haproxy")

/** Starts HAProxy in front of two replicas, waits until it has seen both, and returns its origin. */
const startHaproxy = ([one, other]: readonly [Replica, Replica], timeout = 60) =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-haproxy-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const port = yield* Effect.promise(freePort)
    const file = join(folder, "haproxy.cfg")
    const replaced = configuration
      .replace("bind :80 ", `bind 127.0.0.1:${port} `)
      .replace("127.0.0.1:3001", `127.0.0.1:${one.port}`)
      .replace("127.0.0.1:3002", `127.0.0.1:${other.port}`)
      .replace("timeout server 60s", `timeout server ${timeout}s`)
      .replace("timeout client 60s", `timeout client ${timeout}s`)
    writeFileSync(file, `${replaced}\n`)
    return yield* startProxy(program!, ["-db", "-f", file], port)
  })

/** Waits until the proxy passes a call to a process. */
const passes = (origin: string, { pid }: Replica) =>
  until(async () => {
    const { body, headers, method } = modern("tools/call", { name: "process", arguments: {} })
    return (await (await fetch(`${origin}/mcp`, { method, headers, body })).text()).includes(`"text":"${pid}"`)
  })

if (program === undefined) {
  const reason = "HAProxy is neither in PATH nor in /usr/sbin"
  it.skipIf(process.env["CI"] !== "true")(`HAProxy · not checked: ${reason}`, () => assert.fail(reason))
} else {
  describe("two instances behind HAProxy", () => {
    it.live("pass silent calls, reports, questions and uploads of all revisions, also in sessions", () =>
      Effect.gen(function*() {
        const both = yield* replicas(page, shortened.env)
        const url = `${yield* startHaproxy(both, shortened.timeout)}/mcp`
        const processes = new Set<string>()
        for (const revision of [...testedRevisions, ...testedRevisions]) {
          const client = yield* connect(url, revision)
          for (let call = 0; call < 4; call++) processes.add(yield* textOf(client, "process"))
          expect(yield* textOf(client, "silent", { seconds: 2 * shortened.timeout + 1 })).toBe("woke up")
          expect(yield* textOf(client, "steps")).toBe("done")
          expect(yield* textOf(client, "upload", { text: "x".repeat(3_000_000) })).toBe("3000000")
          expect(yield* textOf(client, "ask")).toBe("Ada of Oslo")
        }
        expect([...processes].toSorted()).toEqual(both.map(({ pid }) => String(pid)).toSorted())
      }).pipe(Effect.scoped))

    it.live("lose no call when one after the other restarts under load", () =>
      Effect.gen(function*() {
        const both = yield* replicas(page, {})
        const origin = yield* startHaproxy(both)
        for (const one of both) yield* passes(origin, one)
        const { answers, failures } = yield* underLoad(
          origin,
          Effect.forEach(both, (one) => Effect.andThen(one.restart, Effect.suspend(() => passes(origin, one))), {
            discard: true
          })
        )
        expect(failures).toEqual([])
        expect(answers.size).toBe(4)
      }).pipe(Effect.scoped))

    it.live("pass a call that is silent for longer than the timeout of the recipe", () =>
      Effect.gen(function*() {
        const url = `${yield* startHaproxy(yield* replicas(page, {}))}/mcp`
        const texts = yield* Effect.forEach(testedRevisions, (revision) =>
          Effect.flatMap(connect(url, revision), (client) => textOf(client, "silent", { seconds: 70 })), {
          concurrency: "unbounded"
        })
        expect(texts).toEqual(testedRevisions.map(() =>
          "woke up"
        ))
      }).pipe(Effect.scoped))
  })
}
