/** A server with a page, clients of it, and a page that the tests play. */
import * as App from "@skein/apps/App"
import * as AppHost from "@skein/apps/AppHost"
import * as Client from "@skein/client/Client"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

export type Json = any

export const page = App.make("ui://shop/sales", {
  title: "Sales",
  html: "<!doctype html><p>Sales</p>",
  csp: { connectDomains: ["https://api.example.com"] },
  permissions: ["clipboardWrite"],
  prefersBorder: true
})

export const sales = App.tool("sales", {
  app: page,
  description: "Shows the sales of a year",
  input: { year: Schema.Int },
  output: { months: Schema.Array(Schema.Finite) }
})

export const addSale = App.tool("add_sale", {
  app: page,
  visibility: ["app"],
  input: { amount: Schema.Finite },
  output: { months: Schema.Array(Schema.Finite) }
})

export const onlyModel = App.tool("secret_of_model", { app: page, visibility: ["model"] })

export const definitions = [
  App.layer(sales, ({ year }) =>
    year < 0
      ? Effect.fail({ message: "There are no sales before the year 0" })
      : Effect.succeed(Tool.result({ structured: { months: [1, 2, year] }, content: `3 months of ${year}` }))),
  App.layer(addSale, ({ amount }) => Effect.succeed({ months: [amount] })),
  App.layer(onlyModel, () => Effect.succeed("for the model")),
  Tool.layer(Tool.make("slow"), () => Effect.never),
  Resource.layer(Resource.make("shop://menu"), Effect.succeed("# Tea"))
] as const

export const serve = (...all: ReadonlyArray<McpServer.Definitions>) =>
  Effect.map(
    Layer.build(
      McpServer.layer({ name: "shop", version: "1.0.0" }, ...all) as Layer.Layer<McpServer.McpServer, never>
    ),
    (context) => Context.get(context, McpServer.McpServer)
  )

/** A client of the shop, whose host shows pages unless `options` say otherwise. */
export const connect = (
  options: Client.Options & { readonly revision?: Revision.Revision } = {},
  all: ReadonlyArray<McpServer.Definitions> = definitions
) =>
  Effect.gen(function*() {
    const server = yield* serve(...all)
    const { revision, ...rest } = options
    return yield* Client.make(InMemoryTransport.transport(server.serve), {
      extensions: AppHost.extensions,
      ...rest,
      ...(revision === undefined ? undefined : { revisions: [revision] })
    })
  })

/** A client of a server in a session of its own, whose messages come from a network address. */
export const connectFrom = (server: McpServer.McpServer["Service"], address: string) =>
  Client.make(
    InMemoryTransport.transport((connection) =>
      server.serve({
        ...connection,
        open: (receiver) =>
          connection.open({
            message: (inbound) => receiver.message(inbound, { address }),
            end: (end) => receiver.end(end)
          }),
        send: (message) => connection.send(message),
        close: connection.close
      })
    ),
    { extensions: AppHost.extensions, revisions: ["2025-11-25"] }
  )

/** The page side of a session: sends raw messages, and records those of the host. */
export const play = (session: AppHost.AppSession) =>
  Effect.gen(function*() {
    const received: Array<Json> = []
    let wake = (): void => {}
    yield* session.attach((message) => {
      received.push(structuredClone(message))
      wake()
    })
    const until = (find: (message: Json) => boolean): Promise<Json> =>
      new Promise((resolve) => {
        const look = () => {
          const found = received.find(find)
          if (found !== undefined) resolve(found)
          return found !== undefined
        }
        if (!look()) wake = () => void look()
      })
    let next = 0
    const send = (message: unknown) => session.receive(message)
    const request = (method: string, params?: JsonObject) =>
      Effect.promise(() => {
        const id = ++next
        send({ jsonrpc: "2.0", id, method, params })
        return until((one) => one.id === id && one.method === undefined)
      })
    const notify = (method: string, params: JsonObject = {}) => send({ jsonrpc: "2.0", method, params })
    const start = (appCapabilities: JsonObject = {}) =>
      Effect.map(
        request("ui/initialize", {
          appInfo: { name: "p", version: "1" },
          appCapabilities,
          protocolVersion: "2026-01-26"
        }),
        (answer) => {
          notify("ui/notifications/initialized")
          return answer.result
        }
      )
    return { received, send, request, notify, start, until }
  })
