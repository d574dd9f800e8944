/** The configurations of nginx in the guides, in front of a server. Needs nginx (Debian: nginx-light). */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Protect from "@skein/auth/Protect"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import type * as Revision from "@skein/protocol/Revision"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../scripts/freePort.ts"
import { required, sharedPostgres, unavailable } from "../../packages/sql/test/postgres.ts"
import { testedRevisions } from "./kit.ts"
import { type Headers, initialize, modern, posting } from "./process.ts"
import { blocks, connect, findProgram, replicas, shortened, startProxy, textOf, underLoad, until } from "./proxyKit.ts"

const page = "recipes/nginx.md"
const program = findProgram("nginx")
const [upstream = "", location = ""] = blocks(page, "nginx")

/**
 * Starts nginx with blocks of the recipe in front of two ports, and returns its origin. It ends with the scope. `timeout`
 * replaces that of the recipe, in seconds.
 */
const startNginx = (
  ports: readonly [number, number],
  { timeout = 60 }: { readonly timeout?: number } = {}
) =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-nginx-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
    )
    const port = yield* Effect.promise(freePort)
    const file = join(folder, "nginx.conf")
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`)
    const replaced = upstream.replace("127.0.0.1:3001", `127.0.0.1:${ports[0]}`).replace(
      "127.0.0.1:3002",
      `127.0.0.1:${ports[1]}`
    )
    writeFileSync(
      file,
      `daemon off;
master_process off;
pid ${folder}/pid;
error_log stderr notice;
events {}
http {
  access_log off;
  ${temporary.join("\n  ")}
  ${replaced}
  server {
    listen 127.0.0.1:${port};
    ${location.replace("proxy_read_timeout 60s", `proxy_read_timeout ${timeout}s`)}
  }
}
`
    )
    return yield* startProxy(program!, ["-e", "stderr", "-c", file], port)
  })

/** Sends a request, also with a `Host` of its own, and from another address of the loopback interface. */
const send = (
  url: string,
  init: { readonly headers: Headers; readonly body: string; readonly localAddress?: string }
) =>
  Effect.promise(() =>
    new Promise<number>((resolve, reject) => {
      const { body, headers, localAddress } = init
      request(url, { method: "POST", headers, localAddress }, (response) => {
        response.resume().once("end", () => resolve(response.statusCode ?? 0))
      }).once("error", reject).end(body)
    })
  )

const maxMessageBytes = 4 * 1024 * 1024

if (program === undefined) {
  const reason = "nginx is neither in PATH nor in /usr/sbin"
  it.skipIf(process.env["CI"] !== "true")(`nginx · not checked: ${reason}`, () => assert.fail(reason))
} else {
  describe("one server", () => {
    /** A server behind nginx, as the recipe starts it. Its tool waits until the client has read each report. */
    const serve = Effect.fnUntraced(function*(options: NodeHttp.Options = {}) {
      const reads = yield* Queue.unbounded<number>()
      const wasCancelled = yield* Deferred.make<void>()
      const addresses: Array<string | undefined> = []
      const record = Middleware.layer((next) => (exchange) =>
        Effect.andThen(Effect.sync(() => void addresses.push(exchange.origin?.address)), next(exchange))
      )
      const report = (progress: number) => Effect.andThen(Progress.report({ progress }), Queue.take(reads))
      const brew = Tool.layer(Tool.make("brew"), () =>
        Effect.andThen(report(1), Effect.as(report(2), "Tea")).pipe(
          Effect.onInterrupt(() => Deferred.succeed(wasCancelled, undefined))
        ))
      const server = yield* Layer.build(Layer.provide(
        NodeHttp.layer({ port: 0, allowedHosts: ["mcp.example.com", "127.0.0.1"], trustedProxies: 1, ...options }),
        McpServer.layer({ name: "tea", version: "1.0.0" }, record, brew)
      ))
      const { port } = Context.get(server, NodeHttp.Server)
      const origin = yield* startNginx([port, port])
      return { addresses, origin, reads, url: `${origin}/mcp`, wasCancelled }
    })

    for (const revision of testedRevisions) {
      it.live(`${revision} · passes events of a stream at once`, () =>
        Effect.gen(function*() {
          const { reads, url } = yield* serve()
          const client = yield* Client.make(ClientHttp.transport({ url }), { revisions: [revision] })
          // The call would not end behind a proxy that holds the second report back.
          const onProgress = ({ progress }: { readonly progress: number }) => void Queue.offerUnsafe(reads, progress)
          expect((yield* client.callTool("brew", {}, { onProgress })).content).toEqual([{ type: "text", text: "Tea" }])
        }).pipe(Effect.scoped))
    }

    it.live("2025-11-25 · passes the stream of a session, and its DELETE", () =>
      Effect.gen(function*() {
        const { url } = yield* serve()
        const opened = yield* Effect.promise(() => fetch(url, initialize()))
        const session = { "mcp-session-id": opened.headers.get("mcp-session-id")! }
        const stream = yield* Effect.promise(() => fetch(url, { headers: { ...posting, ...session } }))
        expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream"])
        expect((yield* Effect.promise(() => fetch(url, { method: "DELETE", headers: session }))).status).toBe(204)
        // The stream ends with its session.
        expect(yield* Effect.promise(() => stream.text())).toMatch(/^id: /)
      }).pipe(Effect.scoped))

    it.live("2026-07-28 · cancels a call whose client closes the connection", () =>
      Effect.gen(function*() {
        const { url, wasCancelled } = yield* serve()
        const { body, headers, method } = modern("tools/call", { name: "brew", arguments: {} }, {}, {
          progressToken: 1
        })
        const aborted = new AbortController()
        yield* Effect.promise(() => fetch(url, { method, headers, body, signal: aborted.signal }))
        aborted.abort()
        yield* Deferred.await(wasCancelled)
      }).pipe(Effect.scoped))

    it.live("passes the Host and bodies of maxMessageBytes, and refuses larger ones", () =>
      Effect.gen(function*() {
        const { url } = yield* serve()
        const of = (host: string, bytes?: number) => {
          const { body, headers } = modern("tools/list")
          return send(url, { headers: { ...headers, host }, body: bytes === undefined ? body : body.padEnd(bytes) })
        }
        expect(yield* of("other.example")).toBe(403)
        expect(yield* of("mcp.example.com")).toBe(200)
        expect(yield* of("mcp.example.com", maxMessageBytes)).toBe(200)
        expect(yield* of("mcp.example.com", maxMessageBytes + 1)).toBe(413)
      }).pipe(Effect.scoped))

    it.live("passes the address of the client, and none that the client writes itself", () =>
      Effect.gen(function*() {
        const { addresses, url } = yield* serve()
        const { body, headers } = modern("tools/list")
        yield* send(url, {
          headers: { ...headers, "x-forwarded-for": "203.0.113.9" },
          body,
          localAddress: "127.0.0.2"
        })
        expect(addresses).toEqual(["127.0.0.2"])
      }).pipe(Effect.scoped))

    it.live("passes the metadata of a server with a sign-in", () =>
      Effect.gen(function*() {
        const resource = "https://mcp.example.com/mcp"
        const verify = TokenVerifier.jwt({ issuer: "https://login.example" })
        const { origin } = yield* serve({ protection: yield* Protect.make({ resource, verify }) })
        const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`
        const answer = yield* Effect.promise(() => fetch(metadata))
        expect(yield* Effect.promise(() => answer.json())).toMatchObject({ resource })
      }).pipe(Effect.scoped))
  })

  describe("two instances", () => {
    it.live("pass silent calls, reports, questions and uploads of all revisions", () =>
      Effect.gen(function*() {
        const [one, other] = yield* replicas(page, shortened.env)
        const url = `${yield* startNginx([one.port, other.port], { timeout: shortened.timeout })}/mcp`
        const processes = new Set<string>()
        for (const revision of testedRevisions) {
          const client = yield* connect(url, revision)
          for (let call = 0; call < 4; call++) processes.add(yield* textOf(client, "process"))
          expect(yield* textOf(client, "silent", { seconds: 2 * shortened.timeout + 1 })).toBe("woke up")
          expect(yield* textOf(client, "steps")).toBe("done")
          expect(yield* textOf(client, "upload", { text: "x".repeat(3_000_000) })).toBe("3000000")
          // Without sessions, older clients cannot be asked.
          if (revision === "2026-07-28") expect(yield* textOf(client, "ask")).toBe("Ada of Oslo")
        }
        expect([...processes].toSorted()).toEqual([one, other].map(({ pid }) => String(pid)).toSorted())
      }).pipe(Effect.scoped))

    it.skipIf(unavailable === undefined || required)(`a fleet · not checked: ${unavailable}`, () => {})

    if (unavailable === undefined || required) {
      // With the server of programs/fleetShop.ts.
      it.live("programs/fleetNode.ts: any node serves a session", () =>
        Effect.gen(function*() {
          const database = yield* Effect.promise(sharedPostgres)
          const both = yield* replicas(page, {
            program: "../programs/fleetNode.ts",
            SKEIN_STATELESS: "false",
            DATABASE_URL: yield* Effect.promise(() => database.createDatabase())
          })
          const client = yield* connect(`${yield* startNginx([both[0].port, both[1].port])}/mcp`, "2025-11-25")
          for (let call = 0; call < 4; call++) {
            const { content } = yield* client.callTool("price", { tea: "sencha" })
            expect(content).toEqual([{ type: "text", text: "sencha: 9 EUR" }])
          }
          both[0].kill()
          yield* until(async () =>
            !(await fetch(`http://127.0.0.1:${both[0].port}/livez`).then(() => true, () => false))
          )
          for (let call = 0; call < 4; call++) yield* client.callTool("price", { tea: "sencha" })
        }).pipe(Effect.scoped))

      it.live("of a fleet serve every session, also when one after the other restarts", () =>
        Effect.gen(function*() {
          const database = yield* Effect.promise(sharedPostgres)
          const both = yield* replicas(page, {
            SKEIN_STATELESS: "false",
            DATABASE_URL: yield* Effect.promise(() => database.createDatabase())
          })
          const url = `${yield* startNginx([both[0].port, both[1].port])}/mcp`
          const client = yield* connect(url, "2025-11-25")
          const processes = new Set<string>()
          for (let call = 0; call < 4; call++) processes.add(yield* textOf(client, "process"))
          expect([...processes].toSorted()).toEqual(both.map(({ pid }) => String(pid)).toSorted())
          for (let call = 0; call < 4; call++) expect(yield* textOf(client, "ask")).toBe("Ada of Oslo")
          yield* Effect.forEach(both, ({ restart }) => restart, { discard: true })
          for (let call = 0; call < 4; call++) processes.add(yield* textOf(client, "process"))
          expect(processes.size).toBe(4)
          expect(yield* textOf(client, "ask")).toBe("Ada of Oslo")
        }).pipe(Effect.scoped))
    }

    it.live("lose no call when one after the other restarts under load", () =>
      Effect.gen(function*() {
        const both = yield* replicas(page, {})
        const origin = yield* startNginx([both[0].port, both[1].port])
        const { answers, failures } = yield* underLoad(
          origin,
          Effect.forEach([...both, ...both], ({ restart }) => restart, { discard: true })
        )
        expect(failures).toEqual([])
        // Each of the processes before and after a restart has answered.
        expect(answers.size).toBeGreaterThanOrEqual(4)
      }).pipe(Effect.scoped))

    it.live("pass a call that is silent for longer than the timeout of the recipe", () =>
      Effect.gen(function*() {
        const [one, other] = yield* replicas(page, {})
        const url = `${yield* startNginx([one.port, other.port])}/mcp`
        const call = (revision: Revision.Revision) =>
          Effect.flatMap(connect(url, revision), (client) => textOf(client, "silent", { seconds: 70 }))
        const texts = yield* Effect.forEach(testedRevisions, call, { concurrency: "unbounded" })
        expect(texts).toEqual(testedRevisions.map(() => "woke up"))
      }).pipe(Effect.scoped))
  })
}
