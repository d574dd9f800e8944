/**
 * Express with servers at several paths. It runs in its own process, because the conditions of the tests resolve one of
 * Express's dependencies to a module that cannot be loaded.
 */
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { IncomingMessage } from "node:http"
import { createRequire } from "node:module"
import type { AddressInfo } from "node:net"

// Express has no types.
const express = createRequire(import.meta.url)("express")

const echo = Tool.layer(
  Tool.make("echo", { description: "Says it again.", input: { text: Schema.String } }),
  ({ text }) => Effect.succeed(text)
)
const whoami = Tool.layer(
  Tool.make("whoami", { description: "Tells who asks." }),
  () =>
    Effect.map(
      Principal.current,
      (principal) => Option.match(principal, { onNone: () => "nobody", onSome: ({ id }) => id })
    )
)

const server = McpServer.layer({ name: "express", version: "1.0.0" }, echo, whoami)
const mount = async (options: NodeHttp.HandlerOptions): Promise<NodeHttp.Handler> =>
  (await NodeHttp.mount(server, options)).handler

const app = express()
app.use("/mcp", await mount({}))

const router = express.Router()
router.all("/mcp", await mount({ path: "/api/v1/mcp" }))
app.use("/api/v1", router)

app.use("/json", express.json(), await mount({ path: "/json", limits: { maxMessageBytes: 1_000 } }))
app.use("/text", express.text({ type: "*/*" }), await mount({ path: "/text" }))
app.use("/raw", express.raw({ type: "*/*" }), await mount({ path: "/raw" }))

const authenticate = (request: IncomingMessage, _response: unknown, next: () => void): void => {
  const id = request.headers["x-user"]
  if (id !== undefined) Object.assign(request, { auth: { id } })
  next()
}
const principal: NodeHttp.HandlerOptions["principal"] = (request) =>
  (request as { readonly auth?: Principal.Principal }).auth
app.use("/auth", authenticate, await mount({ path: "/auth", principal }))

const protectedOptions = {
  path: "/protected/mcp",
  protection: {
    identify: () => Effect.fail(new Http.Refusal({ status: 401, message: "Unauthorized" })),
    pages: (request, answer) => {
      if (request.path !== "/.well-known/metadata") return false
      answer.reply(200, {}, "metadata")
      return true
    },
    paths: ["/.well-known/metadata"]
  }
} satisfies Http.Options
app.all(Http.paths(protectedOptions), await mount(protectedOptions))

const listener = app.listen(0, "127.0.0.1", () => {
  console.error(`Listening on http://127.0.0.1:${(listener.address() as AddressInfo).port}/`)
})
