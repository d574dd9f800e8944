/**
 * A web page as an MCP host: connects to the tea house, lists its tools, calls them, shows their progress, and asks the
 * user their questions. If the server requires it (`npm start -- --auth`), the user signs in.
 */
import * as BrowserTokenStore from "@skein/auth/BrowserTokenStore"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { OAuthError } from "@skein/auth/OAuthError"
import * as WebSignIn from "@skein/auth/WebSignIn"
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

/** Where the user comes back to after the sign-in: this page, without its query. */
const redirectUri = `${location.origin}${location.pathname}`

/** The URL of the server. If the query is the answer to a sign-in, the sign-in knows the server. */
const findServer = (oauth: OAuth.OAuth, query: URLSearchParams) =>
  query.has("state")
    ? Effect.tap(oauth.finish(query), (url) =>
      Effect.sync(() => {
        // The code works once: a reload must not send it again.
        history.replaceState(null, "", `${redirectUri}?${new URLSearchParams({ server: url.href })}`)
      }))
    : Effect.succeed(query.get("server") ?? "http://127.0.0.1:3000/mcp")

const offerSignOut = (oauth: OAuth.OAuth, url: URL | string): void => {
  const button = byId("signOut", HTMLButtonElement)
  button.hidden = false
  button.onclick = () => void Effect.runPromise(oauth.signOut(url)).then(() => location.reload())
}

/** Shows the link to the page where the user signs in. `OAuth` has checked that it is an http or https URL. */
const offerSignIn = (page: URL): void => {
  const link = byId("signIn", HTMLAnchorElement)
  link.href = page.href
  link.hidden = false
  setText("status", `The server requires a sign-in at ${page.host}.`)
}

const run = Effect.gen(function*() {
  const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "The page of the tea house" }) })
  const url = yield* findServer(oauth, new URLSearchParams(location.search))
  const transport = Http.transport({ url, credentials: oauth })
  const client = yield* Client.make(transport, { info: { name: "page", version: "1.0.0" } })
  if ((yield* oauth.state(url))._tag === "Some") offerSignOut(oauth, url)
  showTools(yield* client.listTools())
  enableControls(client)
  setText("status", `Connected to "${client.server?.title ?? client.server?.name}" with revision ${client.revision}.`)
  yield* client.ended
}).pipe(
  Effect.scoped,
  // The cause says why there is no token.
  Effect.catchReason(
    "ClientError",
    "Unauthorized",
    (error) => Effect.fail(error.cause instanceof OAuthError ? error.cause : error)
  ),
  Effect.catchReason("OAuthError", "SignInRequired", ({ url }) => Effect.sync(() => offerSignIn(url))),
  Effect.provide([Elicitation.layer({ form: askUser }), WebSignIn.layer({ redirectUri }), BrowserTokenStore.layer()]),
  Effect.catch((error) => Effect.sync(() => setText("status", error.message)))
)

const fiber = Effect.runFork(run)
// Closes the client when the user leaves the page. A page that is restored from the browser's cache is loaded again.
addEventListener("pagehide", () => fiber.interruptUnsafe())
addEventListener("pageshow", ({ persisted }) => persisted && location.reload())
