/**
 * A web page as an MCP host: connects to the tea house, lists its tools, calls them, shows their progress, and asks the
 * user their questions.
 */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as Http from "@skein/client/Http"
import * as Progress from "@skein/client/Progress"
import type { Tool } from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { askUser } from "./askUser.ts"
import { byId, setText } from "./elements.ts"

/** Example arguments for each tool. */
const exampleArguments: Readonly<Record<string, object>> = {
  greet: { name: "Ada" },
  bill: { tea: "oolong", cups: 2 },
  brew: { tea: "sencha" },
  order: { cake: "sachertorte" },
  book: { name: "Ada" }
}

const tools = byId("tool", HTMLSelectElement)
const args = byId("arguments", HTMLInputElement)
const progress = byId("progress", HTMLProgressElement)

const showTools = (offered: ReadonlyArray<Tool>): void => {
  tools.replaceChildren(...offered.map(({ name, title }) => new Option(title ?? name, name)))
  tools.onchange = () => void (args.value = JSON.stringify(exampleArguments[tools.value] ?? {}))
  tools.onchange(new Event("change"))
}

/** Calls a tool and shows its progress and its result. Interrupting the effect cancels the call on the server. */
const call = (client: Client.Client, name: string, text: string) =>
  Effect.try(() => JSON.parse(text) as object).pipe(
    Effect.flatMap((args) =>
      Stream.runForEach(
        Progress.stream((onProgress) => client.callTool(name, args, { onProgress })),
        (update) =>
          Effect.sync(() => {
            if (update._tag === "Result") return setText("result", JSON.stringify(update.result, null, 2))
            progress.max = update.total ?? 1
            progress.value = update.progress
            setText("result", update.message ?? "")
          })
      )
    ),
    Effect.catch((error) => Effect.sync(() => setText("result", error.message)))
  )

/** Enables the buttons. A new call cancels the previous one. */
const enableControls = (client: Client.Client): void => {
  let running: Fiber.Fiber<void> | undefined
  const stop = (): void => {
    running?.interruptUnsafe()
    progress.value = 0
    setText("result", "")
  }
  byId("call", HTMLFormElement).onsubmit = (event) => {
    event.preventDefault()
    stop()
    running = Effect.runFork(call(client, tools.value, args.value))
  }
  byId("cancel", HTMLButtonElement).onclick = stop
  byId("controls", HTMLFieldSetElement).disabled = false
}

const url = new URLSearchParams(location.search).get("server") ?? "http://127.0.0.1:3000/mcp"

const run = Effect.gen(function*() {
  const client = yield* Client.make(Http.transport({ url }), { info: { name: "page", version: "1.0.0" } })
  showTools(yield* client.listTools())
  enableControls(client)
  setText("status", `Connected to "${client.server?.title ?? client.server?.name}" with revision ${client.revision}.`)
  yield* client.ended
}).pipe(
  Effect.scoped,
  Effect.provide(Elicitation.layer({ form: askUser })),
  Effect.catch((error) => Effect.sync(() => setText("status", error.message)))
)

const fiber = Effect.runFork(run)
// Closes the client when the user leaves the page. A page that is restored from the browser's cache is loaded again.
addEventListener("pagehide", () => fiber.interruptUnsafe())
addEventListener("pageshow", ({ persisted }) => persisted && location.reload())
