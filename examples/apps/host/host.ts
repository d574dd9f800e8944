/**
 * A host in a web page: connects to the server, offers its tools to an imagined model, and shows the page of a tool that is
 * called. With `?plain` it does not declare the extension, as a host without apps.
 */
import * as AppFrame from "@skein/apps/AppFrame"
import * as AppHost from "@skein/apps/AppHost"
import type { HostContext } from "@skein/apps/UiMessage"
import * as UiMeta from "@skein/apps/UiMeta"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"

const query = new URLSearchParams(location.search)
const byId = <E extends HTMLElement>(id: string): E => document.getElementById(id) as E

const log = (...parts: ReadonlyArray<string>): void => {
  const item = document.createElement("li")
  item.textContent = parts.join(" ")
  byId("log").append(item)
}

const theme = (): "light" | "dark" => document.documentElement.dataset["theme"] === "dark" ? "dark" : "light"

const contextOf = (): HostContext => ({
  theme: theme(),
  locale: navigator.language,
  platform: "web",
  containerDimensions: { maxHeight: 700 },
  styles: {
    variables: {
      "--color-background-primary": "light-dark(#ffffff, #1b2125)",
      "--color-background-secondary": "light-dark(#f4f6f8, #242b30)",
      "--color-text-primary": "light-dark(#1c2429, #e6edf1)",
      "--color-text-secondary": "light-dark(#5d6a73, #93a1aa)",
      "--color-border-primary": "light-dark(#d9dfe4, #333c42)",
      "--font-sans": "system-ui, sans-serif"
    }
  }
})

const program = Effect.gen(function*() {
  const client = yield* Client.make(
    Http.transport({ url: query.get("server")! }),
    query.has("plain") ? {} : { extensions: AppHost.extensions }
  )
  const tools = yield* client.listTools()
  const tool = tools.find((one) => one.name === (query.get("tool") ?? "sales"))!
  log("tools for the model:", tools.filter(UiMeta.isForModel).map(({ name }) => name).join(", "))
  byId("tool").textContent = tool.name
  let session: AppHost.AppSession | undefined
  let shown = yield* Scope.make()

  const show = Effect.gen(function*() {
    const frame = document.createElement("iframe")
    frame.title = tool.title ?? tool.name
    const from = document.createElement("div")
    from.className = "from"
    from.textContent = `From the server ${client.server?.title ?? client.server?.name}`
    byId("app").replaceChildren(from, frame)
    session = yield* AppHost.open(client, tool, {
      hostInfo: { name: "example-host", version: "1.0.0" },
      context: contextOf(),
      allowPermission: (permission) => permission === "clipboardWrite",
      approveCall: ({ arguments: args, tool }) =>
        Effect.sync(() => {
          log("the page calls", tool.name, JSON.stringify(args))
          return true
        }),
      openLink: (url) => Effect.sync(() => log("the page opens", url.href)),
      message: ({ content }) => Effect.sync(() => log("the page says", JSON.stringify(content))),
      updateModelContext: (context) =>
        Effect.sync(() => log("context for the model:", JSON.stringify(context.structuredContent).slice(0, 90))),
      log: ({ data }) => Effect.sync(() => log("the page logs", JSON.stringify(data)))
    })
    yield* AppFrame.mount(frame, session, { sandboxUrl: query.get("sandbox")! })
  })

  const call = Effect.gen(function*() {
    byId("answer").textContent = ""
    const args = { year: Number(byId<HTMLInputElement>("year").value) }
    const hasPage = UiMeta.ofTool(tool).resourceUri !== undefined
    if (hasPage) {
      // The page of the call before prepares for its end, and its frame becomes empty.
      yield* Scope.close(shown, Exit.void)
      shown = yield* Scope.make()
      yield* Scope.provide(show, shown)
    }
    const result = yield* hasPage ? session!.call(args) : client.callTool(tool.name, args)
    const text = result.content.flatMap((block) => block.type === "text" ? [block.text] : []).join("\n")
    log("content for the model:", text)
    if (!hasPage) byId("answer").textContent = text
  }).pipe(Effect.catch(({ message }) => Effect.sync(() => log("failed:", message))))

  byId("call").addEventListener("submit", (event) => {
    event.preventDefault()
    Effect.runFork(call)
  })
  byId("theme").addEventListener("click", () => {
    const next = theme() === "dark" ? "light" : "dark"
    document.documentElement.dataset["theme"] = next
    byId("theme").textContent = next === "dark" ? "Light theme" : "Dark theme"
    if (session !== undefined) Effect.runFork(session.setContext({ theme: next }))
  })
  byId<HTMLButtonElement>("run").disabled = false
  return yield* Effect.never
})

Effect.runFork(
  Effect.scoped(program).pipe(Effect.catch(({ message }) => Effect.sync(() => log("failed:", message))))
)
