/**
 * A guided tour, `npm run tour`: starts the tea house as a child process, once in each era, and prints the conversation as it passes.
 */
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import type * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { join } from "node:path"
import * as Console from "./console.ts"

const args = ["--conditions=@skein/source", join(import.meta.dirname, "main.ts"), "--stdio"]
const Bill = Schema.Struct({ total: Schema.Finite, currency: Schema.String })

const visit = (revisions: ReadonlyArray<Revision.Revision>) =>
  Effect.scoped(Effect.gen(function*() {
    // On stderr it shows its requests, which are all here.
    const transport = Stdio.transport({ command: process.execPath, args, stderr: "ignore" })
    const client = yield* Client.make(Console.tap(transport), { info: { name: "tour", version: "1.0.0" }, revisions })

    Console.aside(`Connected to ${client.server?.title ?? client.server?.name}, in revision ${client.revision}.`)
    const { tools } = yield* client.listToolsPage()
    Console.aside(`It has ${tools.length} tools: ${tools.map(({ name }) => name).join(", ")}.`)
    yield* client.callTool("greet", { name: "Ada" })

    Console.aside("A tool with a typed result: its output schema is checked on both sides.")
    const { total, currency } = yield* client.callTool("bill", { tea: "oolong", cups: 2 }, { output: Bill })
    Console.aside(`The program has { total: ${total}, currency: ${JSON.stringify(currency)} }, typed.`)

    Console.aside("A tool that takes its time, and says how far it is.")
    yield* client.callTool("brew", { tea: "sencha" }, { onProgress: () => {} })

    Console.aside("A tool that fails, as a tool may: the model can read why.")
    yield* client.callTool("order", { cake: "sachertorte" })

    Console.aside("A tool that does not exist: a protocol error, and nothing breaks.")
    yield* Effect.flip(client.callTool("juggle"))

    Console.aside("Resources and a prompt.")
    yield* client.listResourcesPage()
    yield* client.readResource("menu://today")
    yield* client.readResource("tea://assam")
    yield* client.getPrompt("recommend", { mood: "curious" })

    Console.aside("A call that is given up: the server is told, and its handler is interrupted.")
    yield* Effect.timeoutOption(client.callTool("brew", { tea: "assam" }), "100 millis")
    Console.aside("Nothing comes back for it. That was all: the server is asked to leave.")
  }))

const tour = Effect.gen(function*() {
  Console.title("2025-11-25: a session, opened with a handshake\n")
  yield* visit(["2025-11-25"])
  Console.title("2026-07-28: no session, each request stands alone")
  Console.aside("Each request says who asks, and in which revision, in its `_meta` (not shown).\n")
  yield* visit(["2026-07-28"])
  Console.title("Both servers have left. That was the tour; the server is examples/tour/server.ts")
})

Effect.runPromise(tour).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
