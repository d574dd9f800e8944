/**
 * `npm run tour`: starts the tea house server as a child process, with revision 2025-11-25 and then with 2026-07-28,
 * and prints the whole conversation.
 */
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import type * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { join } from "node:path"
import { comment, heading, printConversation } from "./conversationPrinter.ts"

const args = ["--conditions=@skein/source", join(import.meta.dirname, "main.ts"), "--stdio"]
const Bill = Schema.Struct({ total: Schema.Finite, currency: Schema.String })

const converse = (revisions: ReadonlyArray<Revision.Revision>) =>
  Effect.scoped(Effect.gen(function*() {
    // The server logs its requests to stderr. The conversation shows them already.
    const transport = Stdio.transport({ command: process.execPath, args, stderr: "ignore" })
    const client = yield* Client.make(printConversation(transport), {
      info: { name: "tour", version: "1.0.0" },
      revisions
    })

    comment(`Connected to "${client.server?.title ?? client.server?.name}" with revision ${client.revision}.`)
    const tools = yield* client.listTools()
    comment(`The server has ${tools.length} tools: ${tools.map(({ name }) => name).join(", ")}.`)
    yield* client.callTool("greet", { name: "Ada" })

    comment("A tool with a typed result. The server and the client check it against the output schema.")
    const { total, currency } = yield* client.callTool("bill", { tea: "oolong", cups: 2 }, { output: Bill })
    comment(`The program receives a typed value: { total: ${total}, currency: ${JSON.stringify(currency)} }.`)

    comment("A tool that reports progress.")
    yield* client.callTool("brew", { tea: "sencha" }, { onProgress: () => {} })

    comment("A tool that fails. The error is a result, so that the model can read it.")
    yield* client.callTool("order", { cake: "sachertorte" })

    comment("A tool that does not exist. The response is a protocol error; the connection stays open.")
    yield* Effect.flip(client.callTool("juggle"))

    comment("Resources and a prompt.")
    yield* client.listResources()
    yield* client.readResource("menu://today")
    yield* client.readResource("tea://assam")
    yield* client.getPrompt("recommend", { mood: "curious" })

    comment("A call that times out. The client sends a cancellation, and the server interrupts the handler.")
    yield* Effect.timeoutOption(client.callTool("brew", { tea: "assam" }), "100 millis")
    comment("A cancelled call has no response. The client closes the connection, and the server process exits.")
  }))

const tour = Effect.gen(function*() {
  heading("2025-11-25: a session, opened with a handshake\n")
  yield* converse(["2025-11-25"])
  heading("2026-07-28: no session, every request is self-contained")
  comment("Each request carries the client's name, its capabilities and the revision in `_meta` (not shown).\n")
  yield* converse(["2026-07-28"])
  heading("Both server processes have exited. The code of the server is in examples/tour/server.ts")
})

Effect.runPromise(tour).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
