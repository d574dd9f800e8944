/** The configurations of nginx in the guides, in front of a server. Needs nginx (Debian: nginx-light). */
import { assert, describe, expect, it } from "@effect/vitest"
import * as Protect from "@skein/auth/Protect"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
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
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { freePort } from "../../scripts/freePort.ts"
import { blocksOf } from "./blocks.ts"
import { testedRevisions } from "./kit.ts"
import { type Headers, initialize, modern, posting } from "./process.ts"

const program = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin"]
  .map((folder) => join(folder, "nginx"))
  .find((path) => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** Starts nginx with a block of a guide in front of a port, and returns its origin. It ends with the scope. */
const startNginx = (block: string, serverPort: number) =>
  Effect.gen(function*() {
    const folder = mkdtempSync(join(tmpdir(), "skein-nginx-"))
    const port = yield* Effect.promise(freePort)
    const file = join(folder, "nginx.conf")
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder};`)
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
  server {
    listen 127.0.0.1:${port};
    ${block.replaceAll(/(?<=proxy_pass http:\/\/127\.0\.0\.1:)\d+/g, String(serverPort))}
  }
}
`
    )
    yield* Effect.acquireRelease(
      Effect.promise(() =>
        new Promise<ChildProcess>((resolve, reject) => {
          const child = spawn(program!, ["-e", "stderr", "-c", file], { stdio: ["ignore", "ignore", "pipe"] })
          let log = ""
          child.stderr.setEncoding("utf8").on("data", (text: string) => {
            log += text
            // It logs its version when it listens.
            if (/nginx\/\d/.test(log)) resolve(child)
          })
          child.once("error", reject)
          child.once("exit", (code) => reject(new Error(`nginx ended with ${code}: ${log}`)))
        })
      ),
      (child) =>
        Effect.promise(() =>
          new Promise((ended) => {
            child.once("exit", ended)
            child.kill("SIGKILL")
          })
        ).pipe(Effect.andThen(Effect.sync(() => rmSync(folder, { recursive: true }))))
    )
    return `http://127.0.0.1:${port}`
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
  describe.each(["recipes/nginx.md"])("%s", (guide) => {
    const block = blocksOf(guide).find(({ info }) => info === "nginx")!.text

    /** A server behind nginx, as the guide starts it. Its tool waits until the client has read each report. */
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
      const origin = yield* startNginx(block, Context.get(server, NodeHttp.Server).port)
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

    if (guide === "recipes/nginx.md") {
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
    }
  })
}
