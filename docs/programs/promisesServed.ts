/** An HTTP server: callers, middleware, completion, updates, probes and routes. */
import { applicationError, AsyncServer, middleware, Refusal } from "skein"
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
  .use(middleware(async (request, next) => {
    const { principal } = request.caller
    if (request.method === "tools/call" && readOnly.has(principal?.id ?? "")) throw applicationError(403, "Read only")
    return next()
  }))

shop.route("PUT", "/menu", async (request) => {
  menu = await request.text()
  await shop.updated("shop://menu")
  return new Response(null, { status: 204 })
})

export const listen = (port: number) =>
  shop.listen({
    port,
    // Refuses other callers. Without it, `undefined` is an anonymous caller.
    principal: async ({ headers }) => {
      const user = users.get(headers.authorization ?? "")
      if (user === undefined) throw new Refusal({ status: 401, message: "Unauthorized" })
      return user
    },
    health: { check: async (signal) => void await prices(signal) }
  })
