/** An HTTP server without effects: callers, middleware, completion, updates, probes and routes. */
import { AsyncServer } from "@skein/server/AsyncServer"
import { Refusal } from "@skein/server/Http"
import * as McpError from "@skein/server/McpError"
import * as Middleware from "@skein/server/Middleware"
import * as NodeRoutes from "@skein/server/NodeRoutes"
import { priceOf, prices } from "./teaShop.ts"

const users = new Map([["Bearer ada", { id: "ada" }], ["Bearer bob", { id: "bob" }]])
const readOnly = new Set(["bob"])
let menu = "# Tea"

export const shop = new AsyncServer({ name: "shop", version: "1.0.0" })
  .tool("order", {}, (_, { principal }) => `A pot of tea for ${principal?.id}`)
  .resource("shop://menu", { mimeType: "text/markdown" }, () => menu)
  .template(
    "shop://teas/{tea}",
    { name: "tea" },
    async ({ tea }, _, { signal }) => `${await priceOf(tea, signal)} cents`,
    {
      complete: {
        tea: async (typed) =>
          Object.keys(await prices(AbortSignal.timeout(1_000))).filter((tea) => tea.startsWith(typed))
      }
    }
  )
  .use(Middleware.async(async (request, next) => {
    const { principal } = request.caller
    if (request.method === "tools/call" && readOnly.has(principal?.id ?? "")) throw McpError.other(403, "Read only")
    return next()
  }))

export const listen = (port: number) =>
  shop.listen({
    port,
    // Refuses other callers. Without it, `undefined` is an anonymous caller.
    principal: async ({ headers }) => {
      const user = users.get(headers.authorization ?? "")
      if (user === undefined) throw new Refusal({ status: 401, message: "Unauthorized" })
      return user
    },
    health: { check: async (signal) => void await prices(signal) },
    routes: NodeRoutes.handlers({
      "/menu": async (request) => {
        if (request.method !== "PUT") return new Response(menu)
        menu = await request.text()
        await shop.updated("shop://menu")
        return new Response(null, { status: 204 })
      }
    })
  })
