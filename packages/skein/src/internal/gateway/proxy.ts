/**
 * Other servers behind a server.
 */
import { transportTo } from "@skein/client/AsyncClient"
import * as Client from "@skein/client/Client"
import * as Core from "@skein/gateway/Proxy"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { define, type Definition } from "../base/definition.ts"
import type { Server } from "../client/asyncClient.ts"
import { coreOptions, type ProxyOptions } from "./proxyOptions.ts"

export type { ProxyConnections, ProxyLists, ProxyOptions, ProxySelection } from "./proxyOptions.ts"

/**
 * Puts another server behind this one: its tools, resources, templates and prompts become definitions of this server, and
 * calls of them are forwarded, with progress, logs, cancellation and questions to the caller. The remote server is given by
 * its URL, by its command, or by the options of its transport.
 *
 * - Definitions have the names that they have there. Where this server has one of the same name, its own counts, with a warning
 *   in the log. `mount("files", proxy(…))` gives them a prefix.
 * - This server starts even if the other one cannot be reached, and connects as soon as it can. A value that names no server
 *   fails its start with a `TypeError`.
 *
 * @example
 * new AsyncServer({ name: "desk", version: "1.0.0" })
 *   .use(proxy({ command: "npx", args: ["@example/files-server"] }))
 *   .use(mount("mail", proxy("https://mail.example/mcp", { tools: ({ annotations }) => annotations?.readOnlyHint === true })))
 *   .runHttp()
 */
export const proxy = (server: Server, options: ProxyOptions = {}): Definition =>
  define(Layer.unwrap(Effect.map(
    Effect.promise(() => transportTo(server as never)),
    (transport) => Core.layer(Client.make(transport, options.client as Client.Options), coreOptions(options))
  )))
