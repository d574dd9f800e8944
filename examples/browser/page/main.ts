/**
 * A host in a web page: connects to the tea house, lists its tools, calls them, shows how far they are, and answers what they ask.
 */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as Http from "@skein/client/Http"
import * as Progress from "@skein/client/Progress"
import type { Tool } from "@skein/protocol/Tool"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { question } from "./question.ts"
import { byId, say } from "./elements.ts"

/** What is asked for to begin with. */
const examples: Readonly<Record<string, object>> = {
  greet: { name: "Ada" },
  bill: { tea: "oolong", cups: 2 },
  brew: { tea: "sencha" },
  order: { cake: "sachertorte" },
  book: { name: "Ada" }
}

const tools = byId("tool", HTMLSelectElement)
const args = byId("arguments", HTMLInputElement)
const progress = byId("progress", HTMLProgressElement)

const offer = (offered: ReadonlyArray<Tool>): void => {
  tools.replaceChildren(...offered.map(({ name, title }) => new Option(title ?? name, name)))
  tools.onchange = () => void (args.value = JSON.stringify(examples[tools.value] ?? {}))
  tools.onchange(new Event("change"))
}

/** One call, from its progress to its result. Interrupting it cancels it at the server. */
const call = (client: Client.Client, name: string, text: string) =>
  Effect.try(() => JSON.parse(text) as object).pipe(
    Effect.flatMap((args) =>
      Stream.runForEach(
        Progress.stream((onProgress) => client.callTool(name, args, { onProgress })),
        (update) =>
          Effect.sync(() => {
            if (update._tag === "Result") return say("result", JSON.stringify(update.result, null, 2))
            progress.max = update.total ?? 1
            progress.value = update.progress
            say("result", update.message ?? "")
          })
      )
    ),
    Effect.catch((error) => Effect.sync(() => say("result", error.message)))
  )

/** Makes the buttons work: a new call ends the one before. */
const listen = (client: Client.Client): void => {
  let running: Fiber.Fiber<void> | undefined
  const stop = (): void => {
    running?.interruptUnsafe()
    progress.value = 0
    say("result", "")
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

const visit = Effect.gen(function*() {
  const client = yield* Client.make(Http.transport({ url }), { info: { name: "page", version: "1.0.0" } })
  offer(yield* client.listTools())
  listen(client)
  say("status", `Connected to ${client.server?.title ?? client.server?.name}, in revision ${client.revision}.`)
  yield* client.ended
}).pipe(
  Effect.scoped,
  Effect.provide(Elicitation.layer({ form: question })),
  Effect.catch((error) => Effect.sync(() => say("status", error.message)))
)

const life = Effect.runFork(visit)
// Who leaves the page leaves the house; who comes back to it comes in anew.
addEventListener("pagehide", () => life.interruptUnsafe())
addEventListener("pageshow", ({ persisted }) => persisted && location.reload())
