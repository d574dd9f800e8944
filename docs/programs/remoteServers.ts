/** The programs of `remote-servers.md`. */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as Stdio from "@skein/client/Stdio"
import * as Proxy from "@skein/gateway/Proxy"
import type { Transport } from "@skein/runtime/Connection"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import type { Principal } from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

const add = Tool.layer(Tool.make("hello"), () => Effect.succeed("Hello"))

// #region first
export const Files = Proxy.layer(
  Client.make(Stdio.transport({ command: "npx", args: ["@example/files-server"] }), { label: "files" })
)

export const Desk = McpServer.layer({ name: "desk", version: "1.0.0" }, add, Files)
// #endregion

/** Tools and prompts have a prefix: `files_read`. */
export const Prefixed = McpServer.layer({ name: "desk", version: "1.0.0" }, McpServer.mount("files", Files))

/** A function makes the names. Without a prefix, URIs stay as they are. */
export const renamed = (transport: Transport) =>
  McpServer.mount({ name: (own, kind) => `${kind}.${own}` }, Proxy.layer(Client.make(transport)))

// #region chosen
export const readOnly = (transport: Transport) =>
  Proxy.layer(Client.make(transport, { label: "notes" }), {
    tools: ({ annotations }) => annotations?.readOnlyHint === true,
    resources: ({ uri }) => uri.startsWith("notes://"),
    prompts: false
  })
// #endregion

/** Only administrators see the tools of the remote server. */
export const forAdmins = (transport: Transport) =>
  Catalog.visibleTo(
    ({ principal }) => principal?.["role"] === "admin",
    Proxy.layer(Client.make(transport))
  )

/** Returns the token that a user has at the remote server. */
export const tokenOf = (principal: Principal | undefined): string => `token of ${principal?.id ?? "nobody"}`

// #region users
const url = "https://mail.example/mcp"

/** Lists with the token of this server, and calls with the token of each user. */
export const Mail = Proxy.layer(
  Client.make(Http.transport({ url, headers: { authorization: "Bearer the token of this server" } })),
  {
    connections: Proxy.perPrincipal(({ principal }) =>
      Client.make(Http.transport({ url, headers: { authorization: `Bearer ${tokenOf(principal)}` } }))
    )
  }
)
// #endregion

// #region sessions
const child = Client.make(Stdio.transport({ command: "npx", args: ["@example/shell-server"] }))

/** Each session has a process of its own. */
export const Shell = Proxy.layer(child, { connections: Proxy.perSession(() => child, { maxConnections: 20 }) })
// #endregion

/** Lists what was listed last, even if the remote server is down when this server starts. */
export const remembered = (
  transport: Transport,
  stored: Proxy.Lists | undefined,
  store: (lists: Proxy.Lists) => Effect.Effect<void>
) => Proxy.layer(Client.make(transport), { initial: stored, onListing: store })
