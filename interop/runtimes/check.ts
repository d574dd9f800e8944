/**
 * Runs Skein on the runtime that executes this program (Node, Bun or Deno): the server on its `node:http` and as a
 * web-standard handler on its own HTTP server, and as a child process; each with the clients on `fetch`, on `node:http`
 * and on stdio, in a session and stateless. Prints a line per check, and exits with 1 if one fails.
 */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as Http from "@skein/client/Http"
import * as ClientNodeHttp from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import type { Transport } from "@skein/runtime/Connection"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as WebHttp from "@skein/server/WebHttp"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import assert from "node:assert/strict"
import { fileURLToPath } from "node:url"
import { cancellations, Server } from "./server.ts"

/** The HTTP servers that only one runtime has. */
interface Runtimes {
  readonly Bun?: {
    readonly serve: (
      options: { port: number; idleTimeout: number; fetch: (request: Request) => Promise<Response> }
    ) => {
      readonly port: number
      readonly stop: (closeActiveConnections: boolean) => Promise<void>
    }
  }
  readonly Deno?: {
    readonly serve: (options: { port: number; hostname: string }, fetch: (request: Request) => Promise<Response>) => {
      readonly addr: { readonly port: number }
      readonly shutdown: () => Promise<void>
    }
  }
}

const { Bun, Deno } = globalThis as Runtimes
const runtime = Bun !== undefined ? "bun" : Deno !== undefined ? "deno" : "node"

/** The server as a web-standard handler on the HTTP server of the runtime. */
const webServer = Effect.acquireRelease(
  Effect.sync(() => {
    const { close, handler } = WebHttp.mount(Server)
    const own = Bun !== undefined
      ? Bun.serve({ port: 0, idleTimeout: 0, fetch: (request) => handler(request) })
      : Deno!.serve({ port: 0, hostname: "127.0.0.1" }, (request) => handler(request))
    const port = "port" in own ? own.port : own.addr.port
    const stop = () => "stop" in own ? own.stop(true) : own.shutdown()
    return { url: `http://127.0.0.1:${port}/mcp`, end: () => close().then(stop) }
  }),
  ({ end }) => Effect.promise(end)
)

const answers = Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ name: "Ada" })) })

const textOf = ({ content }: { readonly content: ReadonlyArray<{ readonly type: string; readonly text?: unknown }> }) =>
  content.map(({ text }) => String(text)).join("")

/** The checks of one client. `cancelled` counts cancelled calls, where the server is in this process. */
const check = (transport: Transport, revision: "2025-11-25" | "2026-07-28", cancelled: (() => number) | undefined) =>
  Effect.gen(function*() {
    const client = yield* Client.make(transport, { revisions: [revision] })
    assert.equal(client.revision, revision)
    const seen: Array<number> = []
    const counted = yield* client.callTool("count", { to: 3 }, {
      onProgress: ({ progress }) => void seen.push(progress)
    })
    assert.equal(textOf(counted), "Counted to 3")
    assert.deepEqual(seen, [1, 2, 3])
    assert.equal(textOf(yield* client.callTool("ask")), "Hello, Ada!")
    assert.equal(textOf(yield* client.callTool("large", { chars: 1_000_000 })).length, 1_000_000)
    // Cancels a call that has begun.
    const before = cancelled?.() ?? 0
    const begun = yield* Deferred.make<void>()
    const waiting = yield* Effect.forkChild(
      client.callTool("wait", {}, { onProgress: () => void Deferred.doneUnsafe(begun, Effect.void) })
    )
    yield* Deferred.await(begun)
    yield* Fiber.interrupt(waiting)
    if (cancelled !== undefined) {
      yield* Effect.repeat(Effect.sync(cancelled), {
        until: (now) => now > before,
        schedule: Schedule.spaced("10 millis")
      })
    }
    // Receives the change of a resource.
    const change = yield* client.changes({ uris: ["runtime://state"] }).pipe(
      Stream.tap((change) => change._tag === "Subscribed" ? Effect.forkChild(client.callTool("change")) : Effect.void),
      Stream.filter(({ _tag }) => _tag === "ResourceUpdated"),
      Stream.runHead
    )
    assert.equal(change._tag, "Some")
    assert.equal((yield* client.readResource("runtime://state")).contents.length, 1)
  }).pipe(Effect.scoped, Effect.provide(answers), Effect.timeout("30 seconds"))

let failures = 0
const report = <E>(name: string, effect: Effect.Effect<void, E>) =>
  Effect.matchCause(effect, {
    onSuccess: () => console.log(`ok ${name}`),
    onFailure: (cause) => {
      failures++
      console.log(`failed ${name}: ${cause}`)
    }
  })

const checkAll = (server: string, transports: Readonly<Record<string, () => Transport>>, isHere: boolean) =>
  Effect.forEach(
    Object.entries(transports),
    ([client, transport]) =>
      Effect.forEach(["2025-11-25", "2026-07-28"] as const, (revision) =>
        report(
          `${runtime}: ${server}, ${client}, ${revision}`,
          check(transport(), revision, isHere ? cancellations : undefined)
        ))
  )

const overHttp = (url: string) => ({
  fetch: () => Http.transport({ url }),
  "node:http": () => ClientNodeHttp.transport({ url })
})

const nodeServer = Effect.flatMap(NodeHttp.Server, ({ url }) => checkAll("node:http", overHttp(url), true)).pipe(
  Effect.provide(Layer.provide(NodeHttp.layer({ port: 0 }), Server))
)
const ownServer = Effect.flatMap(webServer, ({ url }) => checkAll(`${runtime}.serve`, overHttp(url), true))

/** The arguments that make the runtime resolve the packages from source. */
const args: ReadonlyArray<string> = {
  node: ["--conditions=@skein/source"],
  bun: ["--conditions=@skein/source"],
  deno: ["run", "-A", "--conditions=@skein/source", "--node-modules-dir=manual"]
}[runtime]
const child = checkAll("child process", {
  stdio: () =>
    Stdio.transport({
      command: process.execPath,
      args: [...args, fileURLToPath(new URL("stdioServer.ts", import.meta.url))]
    })
}, false)

await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  yield* nodeServer
  if (runtime !== "node") yield* ownServer
  yield* child
})))
console.log(`${failures} failed`)
process.exitCode = failures === 0 ? 0 : 1
