import * as HandlerError from "@skein/server/HandlerError"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const search = Tool.layer(
  Tool.make("search", {
    description: "Searches the orders.",
    input: { query: Schema.String, shop: Schema.optionalKey(Schema.String), limit: Schema.optionalKey(Schema.Int) },
    annotations: { readOnlyHint: true }
  }),
  ({ query, shop = "all shops", limit = 100 }) =>
    Effect.succeed(`${limit} orders with ${query} in ${shop}, card 4111 1111 1111 1111`)
)

const refund = Tool.layer(
  Tool.make("refund", { description: "Refunds an order.", annotations: { destructiveHint: true } }),
  () => Effect.succeed("Refunded")
)

// #region calls
// Adds an argument that the model must not choose, and bounds another one.
const ownShop = Middleware.callTool(
  ({ arguments: args, caller }, next) =>
    next({ ...args, shop: caller.principal?.["shop"] ?? "none", limit: Math.min(Number(args["limit"] ?? 10), 50) }),
  { tools: ["search"] }
)

// Answers some calls without the handler. A model reads the message, and can act on it.
const confirmed = Middleware.callTool(
  ({ caller, name }, next) =>
    caller.principal?.["role"] === "manager"
      ? next()
      : Effect.fail(new HandlerError.VisibleError(`Only a manager may call ${name}. Tell the user whom to ask`)),
  { tools: ({ definition }) => definition.annotations?.destructiveHint === true }
)
// #endregion

// Changes the result of all tools.
const masked = Middleware.callTool((_, next) =>
  Effect.map(next(), ({ content, ...rest }) => ({
    ...rest,
    content: content.map((block) =>
      block.type === "text" ? { ...block, text: block.text.replaceAll(/\b(?:\d{4} ?){4}\b/g, "(card)") } : block
    )
  }))
)

const described = Middleware.listTools(({ caller }, next) =>
  Effect.map(next(), (tools) =>
    tools.map((tool) => ({
      ...tool,
      description: `${tool.description ?? ""} Today for ${caller.principal?.["shop"] ?? "nobody"}.`
    })))
)

// The raw level: the same for every method, on the params as the client sent them.
const unwrapped = Middleware.layer((next) => (request) =>
  request.method === "tools/call" && request.params?.["name"] === "find"
    ? next(request.with({ params: { ...request.params, name: "search" } }))
    : next(request)
)

export const Shop = McpServer.layer(
  { name: "shop", version: "1.0.0" },
  unwrapped,
  confirmed,
  masked,
  ownShop,
  described,
  search,
  refund
)
