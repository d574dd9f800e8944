import * as AppFrame from "@skein/apps/AppFrame"
import * as AppHost from "@skein/apps/AppHost"
import * as SandboxProxy from "@skein/apps/SandboxProxy"
import * as UiMeta from "@skein/apps/UiMeta"
import * as Client from "@skein/client/Client"
import type { Transport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import { createServer } from "node:http"

/** A client whose host shows pages, and the tools for its model. */
export const connect = (transport: Transport) =>
  Effect.gen(function*() {
    const client = yield* Client.make(transport, { extensions: AppHost.extensions })
    const tools = yield* client.listTools()
    return { client, tools, forModel: tools.filter(UiMeta.isForModel) }
  })

/** Asks the user of the host. */
export interface User {
  readonly confirms: (question: string) => Effect.Effect<boolean>
}

// #region open
/** Opens the page of a tool, with what this host allows. */
export const open = (client: Client.Client, tool: Parameters<typeof AppHost.open>[1], user: User) =>
  AppHost.open(client, tool, {
    hostInfo: { name: "chat", version: "1.0.0" },
    context: { theme: "dark", locale: "en", containerDimensions: { maxHeight: 600 } },
    allowSource: (source) => source.startsWith("https://"),
    allowPermission: (permission) => permission === "clipboardWrite",
    approveCall: ({ arguments: args, tool }) =>
      tool.annotations?.readOnlyHint === true
        ? Effect.succeed(true)
        : user.confirms(`May the page call ${tool.name} with ${JSON.stringify(args)}?`),
    updateModelContext: () => Effect.void
  })
// #endregion

/** Shows the page in a frame until the scope closes, and calls the tool. */
export const show = (iframe: AppFrame.Frame, session: AppHost.AppSession, args: { readonly [name: string]: unknown }) =>
  Effect.gen(function*() {
    yield* AppFrame.mount(iframe, session, { sandboxUrl: "https://sandbox.example.net/" })
    return yield* session.call(args)
  })

const sandbox = SandboxProxy.make({ hostOrigins: ["https://chat.example.com"] })

export const SandboxServer = createServer((request, response) => {
  const { body, headers, status } = sandbox.answer(request.url ?? "/")
  response.writeHead(status, headers).end(body)
})
